"""`/console/reference`: a test key for an hour, for the reference's page to try endpoints with.

The page at `/docs` asks for it by script, as a person does by these forms, and keeps it in its
memory. So nobody pastes a key that works for years, and what is lent ends by itself.
"""

from litestar import get, post

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import CONSOLE, console_page
from service.pages.console.keys import KeyPages
from service.pages.gate import member_cause, member_of
from service.pages.shell import page
from service.pages.site_map import Html, Page
from service.pages.visit import signed_in
from service.sandbox.fixtures import fixture_ids


def reference_router(keys: KeyPages) -> OneOffRouter:
    """Return the router of what the reference asks for."""

    @get("/console/reference", opt={"page": Page("signed-in")})
    async def offer(request: AnyRequest) -> Html:
        """Offer a test key for the reference, of each partner that can have one."""
        mine = await keys.partners.partners_of(signed_in(request).address_hash)
        approved = [one for one in mine if one["status"] == "approved"]
        return page(request, "console/reference.html", partners=approved)

    @post(f"{CONSOLE}/reference", opt={"page": Page("approved")})
    async def lend(request: AnyRequest) -> Html:
        """Issue a test key that ends within the hour, in place of the last one; show it once."""
        member = member_of(request)
        issued = await keys.commands.lend_key(member.partner_id, member_cause(request))
        await keys.sandbox.ensure(member.partner_id, member.sandbox_epoch)
        ids = fixture_ids(member.partner_id, member.sandbox_epoch)
        return console_page(
            request, "reference_key.html", issued=issued, entity_id=ids.connected_entity_id
        )

    return OneOffRouter("/", route_handlers=[offer, lend])
