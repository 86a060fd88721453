"""`/backoffice/people`: the team, and anybody's passkeys and sessions."""

from typing import Final

from litestar import get, post

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.backoffice.frame import STAFF, BackofficeContext, IdUnknown, backoffice_page
from service.pages.backoffice.search import person_bits
from service.pages.gate import staff_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import signed_in

PEOPLE: Final = {"page": Page("staff", "backoffice.nav.people")}
_PERSON: Final = "/{person_id:str}"


def people_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
    """Return the router of people: looking at them, signing them out, recovering their access."""
    passkeys, sessions = proofs.passkeys, proofs.sessions

    @get(opt=PEOPLE)
    async def team(request: AnyRequest) -> Html:
        """List the service's team."""
        members, unexplained = await context.staff.list()
        return backoffice_page(request, "team.html", staff=members, unexplained=unexplained)

    @get(_PERSON, opt=STAFF)
    async def person(request: AnyRequest, person_id: PathText) -> Html:
        """Show a person's passkeys and sessions."""
        return backoffice_page(
            request,
            "person.html",
            person_id=known(person_id),
            passkeys=await passkeys.of(person_id),
            sessions=await sessions.of(person_id),
            themselves=person_id == signed_in(request).person_id,
        )

    @post(f"{_PERSON}/sign-out", opt=STAFF)
    async def sign_out(request: AnyRequest, person_id: PathText) -> Html:
        """End every session of a person."""
        await proofs.require(request)
        await passkeys.sign_out(known(person_id), staff_cause(request))
        return lead_to(f"/backoffice/people/{person_id}")

    @post(f"{_PERSON}/sessions/{{session_id:str}}/end", opt=STAFF)
    async def end(request: AnyRequest, person_id: PathText, session_id: PathText) -> Html:
        """End one session of a person."""
        await proofs.require(request)
        await passkeys.sign_out(known(person_id), staff_cause(request), session_id)
        return lead_to(f"/backoffice/people/{person_id}")

    @get(f"{_PERSON}/recover", opt=STAFF)
    async def confirm(request: AnyRequest, person_id: PathText) -> Html:
        """Explain what removing somebody's passkeys means, and ask for confirmation."""
        return backoffice_page(request, "recover.html", person_id=known(person_id))

    @post(f"{_PERSON}/recover", opt=STAFF)
    async def recover(request: AnyRequest, person_id: PathText) -> Html:
        """Remove the passkeys of somebody who lost them."""
        await proofs.require(request)
        helper_id = signed_in(request).person_id
        await passkeys.recover(known(person_id), helper_id, staff_cause(request))
        return lead_to(f"/backoffice/people/{person_id}")

    handlers = [team, person, sign_out, end, confirm, recover]
    return OneOffRouter("/people", route_handlers=handlers)


def known(person_id: str) -> str:
    """Return a person's id; raise IdUnknown for what cannot be one."""
    if person_bits(person_id) is None:
        raise IdUnknown(person_id)
    return person_id
