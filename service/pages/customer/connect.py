"""`/connect/<token>`: a partner asks, the customer approves or declines (contract, Path B)."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from service.connections.commands import ConnectionCommands
from service.core.errors import Refusal, invalid
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
        form = form_of(request)
        if token.startswith(TEST_PREFIX):
            return _test_mode_page(request)
        link = await commands.look(token)
        if form.get("answer") == "decline":
            if not await entities_of(request, connections):
                # Whoever is asked has a business; nobody else may use up their link.
                raise Refusal("entity_not_found")
            person_id = signed_in(request).person_id
            await commands.decline(token, customer_cause(request, person_id))
            return lead_to("/connect/declined")
        if form.get("answer") != "approve":
            raise invalid("answer", "expected approve or decline")
        if not form.get("entity_id"):
            return await _asked(request, parts, token, is_unchosen=True)
        entity = await own_entity(request, connections, form["entity_id"])
        await commands.approve(
            token, entity["entity_id"], customer_cause(request, entity["entity_id"])
        )
        return lead_to(f"/connected/{entity['entity_id']}/{link.partner_id}")

    @get("/connect/declined", opt={"page": Page("public")})
    async def declined(request: AnyRequest) -> Html:
        """Explain what declining means."""
        return page(request, "customer/declined.html")

    return OneOffRouter("/", route_handlers=[ask, answer, declined])


def _test_mode_page(request: AnyRequest) -> Html:
    """Return the page for a test-mode link, which nobody can redeem."""
    title, advice = text("connect.test_title"), text("connect.test_advice")
    return refused(request, Refusal("connect_token_invalid"), title, advice)


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
