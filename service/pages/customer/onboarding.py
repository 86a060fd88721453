"""`/onboarding/<token>`: a referred person corrects, completes and finishes (contract, Path A).

A link that the partner got, too, takes signing in with the address that it is for.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.onboardings.commands import Invited, OnboardingCommands
from service.onboardings.wire import Confirmed
from service.pages.customer.connect import ProfileOf
from service.pages.customer.passing_on import ways
from service.pages.shell import faults_of, lead_to, page
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import SignInNeeded, form_of, person_of


def onboarding_router(
    commands: OnboardingCommands, connections: ConnectionsReader, profile_of: ProfileOf
) -> OneOffRouter:
    """Return the router of magic links: a token that was only mailed is credential enough."""

    @get("/onboarding/{token:str}", opt={"page": Page("token")})
    async def ask(request: AnyRequest, token: PathText) -> Html:
        """Show the details as the partner sent them; or who asks, where signing in is needed."""
        person = person_of(request)
        try:
            invited = await commands.look(token, person and person.address_hash)
        except Refusal as refusal:
            return await _sign_in_page(request, commands, profile_of, token, refusal)
        return await _asked(request, profile_of, invited, _filled(invited.details))

    @post("/onboarding/{token:str}", opt={"page": Page("token")})
    async def finish(request: AnyRequest, token: PathText) -> Html:
        """Correct, complete and finish."""
        try:
            faulty = await complete(request, token)
        except Refusal as refusal:
            if refusal.code != "magic_link_already_used":
                raise
            faulty = None  # sent twice: it shows what the first did
        return faulty or lead_to(f"/onboarding/{token}/done")

    async def complete(request: AnyRequest, token: str) -> Html | None:
        """Finish, or return the form once more where what was sent can be mended."""
        with _visiting(request) as visitor:
            invited = await commands.look(token, visitor)
        form = form_of(request)
        given = {name: form.get(name, "") for name in Confirmed.__struct_fields__}
        request_id = request.scope["state"]["request_id"]
        try:
            confirmed = check(Confirmed, **given)
            await commands.complete(token, request_id, confirmed, visitor=visitor)
        except Refusal as refusal:
            if refusal.code not in _mended_by(given):
                raise
            return await _asked(request, profile_of, invited, given, refusal)
        return None

    @get("/onboarding/{token:str}/done", opt={"page": Page("token")})
    async def done(request: AnyRequest, token: PathText) -> Html:
        """Show the entity id, for an hour after finishing."""
        with _visiting(request) as visitor:
            finished = await commands.finished(token, visitor)
        access = await connections.access(finished.partner_id, finished.entity_id)
        partner = await profile_of(finished.partner_id)
        return page(
            request,
            "customer/connected.html",
            entity={"entity_id": access.entity_id, "name": access.name},
            partner_name=partner.name,
            ways=ways(access.entity_id, access.name, partner),
        )

    return OneOffRouter("/", route_handlers=[ask, finish, done])


@contextmanager
def _visiting(request: AnyRequest) -> Generator[str | None]:
    """Yield the look-up of the address that is signed in; lead to signing in where it is needed."""
    person = person_of(request)
    try:
        yield None if person is None else person.address_hash
    except Refusal as refusal:
        if person is None and refusal.code == "onboarding_needs_sign_in":
            raise SignInNeeded from refusal
        raise


async def _sign_in_page(
    request: AnyRequest,
    commands: OnboardingCommands,
    profile_of: ProfileOf,
    token: str,
    refusal: Refusal,
) -> Html:
    """Return who asks, and whom; whoever is signed in is refused, as their address is another.

    Raises any refusal but `onboarding_needs_sign_in`.
    """
    if refusal.code != "onboarding_needs_sign_in":
        raise refusal
    announced = await commands.announce(token)
    is_refused = person_of(request) is not None
    if is_refused:
        request.scope["state"]["code"] = refusal.code
    return page(
        request,
        "customer/onboarding_sign_in.html",
        refusal.row.status if is_refused else 200,
        announced=announced,
        partner=await profile_of(announced.partner_id),
        token=token,
    )


async def _asked(
    request: AnyRequest,
    profile_of: ProfileOf,
    invited: Invited,
    values: dict[str, Any],
    refusal: Refusal | None = None,
) -> Html:
    """Return the form; `refusal` is that of what was sent."""
    if refusal is not None:
        request.scope["state"]["code"] = refusal.code
    return page(
        request,
        "customer/onboarding.html",
        refusal.row.status if refusal else 200,
        invited=invited,
        partner=await profile_of(invited.partner_id),
        values=values,
        faults=faults_of(refusal) if refusal else {},
        is_taken=refusal is not None and refusal.code == "onboarding_unavailable",
    )


def _mended_by(given: Mapping[str, str]) -> set[str]:
    """Return the codes of refusals after which the person can send the form again, otherwise.

    A business that uses the service already may be so by its number alone, which can be mistyped.
    Nobody is told whether it is the number or the address.
    """
    return {"validation_failed", *(["onboarding_unavailable"] if given["company_number"] else [])}


def _filled(details: dict[str, Any]) -> dict[str, Any]:
    """Return the form's fields as the partner sent them."""
    flat = details | details.get("address", {})
    return {name: flat.get(name) or "" for name in Confirmed.__struct_fields__}
