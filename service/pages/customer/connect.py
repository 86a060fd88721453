"""`/connect/<token>`: a partner asks, the customer approves or declines (contract, Path B)."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from service.connections.commands import ConnectionCommands
from service.core.errors import Refusal, invalid
from service.facts.connections import ConnectLinkDeclined, ConnectLinkRedeemed
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.gate import customer_cause
from service.pages.shell import lead_to, page, refused
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of, person_of, signed_in
from service.pages.words import text
from service.partners.commands import Profile

TEST_PREFIX: Final = "test_"
"""The prefix of test mode's tokens, which are inert; those of live mode have no `_`."""


ProfileOf = Callable[[str], Awaitable[Profile]]
"""Returns what people are told of a partner, by its id."""


class _Parts(NamedTuple):
    commands: ConnectionCommands
    connections: ConnectionsReader
    profile_of: ProfileOf


def connect_router(
    commands: ConnectionCommands, connections: ConnectionsReader, profile_of: ProfileOf
) -> OneOffRouter:
    """Return the router of connect links. Only links of live mode are ever found."""
    parts = _Parts(commands, connections, profile_of)

    @get("/connect/{token:str}", opt={"page": Page("token")})
    async def ask(request: AnyRequest, token: PathText) -> Html:
        """Show who asks, for what, and until when."""
        if token.startswith(TEST_PREFIX):
            return _test_mode_page(request)
        return await _asked(request, parts, token)

    @post("/connect/{token:str}", opt={"page": Page("signed-in")})
    async def answer(request: AnyRequest, token: PathText) -> Html:
        """Approve or decline."""
        if token.startswith(TEST_PREFIX):
            return _test_mode_page(request)
        try:
            return await _answer(request, parts, token)
        except Refusal as refusal:
            return await _answered(request, parts, token, refusal)

    @get("/connect/declined", opt={"page": Page("public")})
    async def declined(request: AnyRequest) -> Html:
        """Explain what declining means."""
        return page(request, "customer/declined.html")

    return OneOffRouter("/", route_handlers=[ask, answer, declined])


def _test_mode_page(request: AnyRequest) -> Html:
    """Return the page for a test-mode link, which nobody can redeem."""
    title, advice = text("connect.test_title"), text("connect.test_advice")
    return refused(request, Refusal("connect_token_invalid"), title, advice)


async def _answer(request: AnyRequest, parts: _Parts, token: str) -> Html:
    """Approve or decline as the form says, and lead on."""
    form, commands = form_of(request), parts.commands
    link = await commands.look(token)
    if form.get("answer") == "decline":
        if not await entities_of(request, parts.connections):
            # Whoever is asked has a business; nobody else may use up their link.
            raise Refusal("entity_not_found")
        await commands.decline(token, customer_cause(request, signed_in(request).person_id))
        return lead_to("/connect/declined")
    if form.get("answer") != "approve":
        raise invalid("answer", "expected approve or decline")
    if not form.get("entity_id"):
        return await _asked(request, parts, token, is_unchosen=True)
    entity = await own_entity(request, parts.connections, form["entity_id"])
    entity_id: str = entity["entity_id"]
    await commands.approve(token, entity_id, customer_cause(request, entity_id))
    return lead_to(f"/connected/{entity_id}/{link.partner_id}")


async def _answered(request: AnyRequest, parts: _Parts, token: str, refusal: Refusal) -> Html:
    """Lead whoever has given this answer before to what it led to; refuse anybody else."""
    known, form = await parts.commands.answer(token), form_of(request)
    match known and known.event, form.get("answer"):
        case ConnectLinkRedeemed(partner_id=partner_id, entity_id=entity_id), "approve":
            own = [one["entity_id"] for one in await entities_of(request, parts.connections)]
            if entity_id == form.get("entity_id") and entity_id in own:
                return lead_to(f"/connected/{entity_id}/{partner_id}")
        case ConnectLinkDeclined(), "decline":
            actor = customer_cause(request, signed_in(request).person_id).actor
            if known and known.meta.actor == actor:
                return lead_to("/connect/declined")
        case _:
            pass
    raise refusal


async def _asked(
    request: AnyRequest, parts: _Parts, token: str, *, is_unchosen: bool = False
) -> Html:
    """Return the approval page; `is_unchosen`: none of several businesses was chosen."""
    link, person = await parts.commands.look(token), person_of(request)
    entities = (
        await parts.connections.entities_asked(person.address_hash, link.partner_id)
        if person
        else []
    )
    return page(
        request,
        "customer/connect.html",
        400 if is_unchosen else 200,
        link=link,
        partner=await parts.profile_of(link.partner_id),
        entities=entities,
        free=[one for one in entities if one["connected_at"] is None],
        token=token,
        is_unchosen=is_unchosen,
    )


async def entities_of(request: AnyRequest, connections: ConnectionsReader) -> list[Row]:
    """Return the person's businesses (entity_id, name); raises SignInNeeded."""
    return await connections.entities_of(signed_in(request).address_hash)


async def own_entity(request: AnyRequest, connections: ConnectionsReader, entity_id: str) -> Row:
    """Return one of them; refuses with `entity_not_found` for anybody else's and for none."""
    for row in await entities_of(request, connections):
        if row["entity_id"] == entity_id:
            return row
    raise Refusal("entity_not_found")
