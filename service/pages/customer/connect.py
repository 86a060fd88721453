"""`/connect/<token>`: a partner asks, the customer approves or declines (contract, Path B)."""

from typing import Final

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from service.connections.commands import ConnectionCommands, LinkView
from service.core.errors import Refusal, invalid
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.gate import customer_cause
from service.pages.shell import lead_to, page, refused
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of, person_of, signed_in
from service.pages.words import text

TEST_PREFIX: Final = "test_"
"""The prefix of test mode's tokens, which are inert; those of live mode have no `_`."""


def connect_router(commands: ConnectionCommands, connections: ConnectionsReader) -> OneOffRouter:
    """Return the router of connect links. Only links of live mode are ever found."""

    @get("/connect/{token:str}", opt={"page": Page("token")})
    async def ask(request: AnyRequest, token: PathText) -> Html:
        """Show who asks, for what, and until when."""
        if token.startswith(TEST_PREFIX):
            return _test_mode_page(request)
        link = await commands.look(token)
        known = person_of(request) is not None
        entities = await entities_of(request, connections) if known else []
        return _approval_page(request, link, token, entities)

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
            entities = await entities_of(request, connections)
            return _approval_page(request, link, token, entities, is_unchosen=True)
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


def _approval_page(
    request: AnyRequest,
    link: LinkView,
    token: str,
    entities: list[Row],
    *,
    is_unchosen: bool = False,
) -> Html:
    """Return the approval page; `is_unchosen`: none of several businesses was chosen."""
    return page(
        request,
        "customer/connect.html",
        400 if is_unchosen else 200,
        link=link,
        entities=entities,
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
