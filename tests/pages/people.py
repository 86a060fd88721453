"""Everybody who may see a page, and what its address names."""

import re

from service.pages.site_map import RoutedPage
from tests.pages.visitor import Visitor, local, site_map_of
from tests.world import STAFF, World


class People:
    """Everybody involved, and the values of the paths' parameters."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.site_map = site_map_of(world.service)
        self.pages = self.site_map.pages
        self.posts = [page for page in self.pages if page.method == "POST"]
        self.values: dict[str, str] = {
            "request_id": "req_none",
            "link_id": "lnk_none",
            "session_id": "ses_none",
        }
        self.tokens: dict[str, str] = {}
        self._visitors: dict[str, Visitor] = {}

    async def prepare(self) -> None:
        """Create a partner with a team, a customer's business, links, and staff."""
        world, service = self.world, self.world.service
        partner = await world.partner()
        live = service.modes["live"]
        entity_id = await live.entities.add("Bakery", "customer@example.com", None, STAFF)
        await partner.connect(entity_id)
        claim = await partner.claim(entity_id)
        await service.partners.add_member(partner.partner_id, "member@example.com", STAFF)
        await service.partners.add_member(partner.partner_id, "second@example.com", STAFF)
        await service.staff.add("staff@example.com", STAFF)
        self.values |= {
            "partner_id": partner.partner_id,
            "entity_id": entity_id,
            "claim_id": claim.json()["claim_id"],
            "subject": entity_id,
            "key_id": (await service.partner_list.keys(partner.partner_id))[0]["key_id"],
            "member_id": (await service.partner_list.members(partner.partner_id))[0]["member_id"],
            "person_id": (await Visitor(world).sign_in("member@example.com")).person.person_id,
        }
        customer_id = (await self.signed_in("customer")).person.person_id
        await service.passkeys.add(customer_id, b"credential", b"public key", STAFF)
        self.values["passkey_id"] = (await service.passkeys.of(customer_id))[0].passkey_id
        endpoint_id = service.endpoints.new_endpoint_id()
        url = "https://example.com/hooks"
        await service.endpoints.add(partner.partner_id, endpoint_id, "live", url, [], STAFF)
        self.values["endpoint_id"] = endpoint_id
        body = {"partner_user_id": "u"}
        asked = await partner.call("POST", "/connect-requests", json=body)
        self.tokens["connect"] = local(asked.json()["connect_url"]).rpartition("/")[2]

    async def rightful(self, page: RoutedPage) -> Visitor:
        """Return a visitor with access to a page."""
        if page.who in {"public", "token"}:
            return Visitor(self.world)
        return await self.signed_in(
            {"signed-in": "customer", "approved": "member"}.get(page.who, page.who)
        )

    async def signed_in(self, who: str) -> Visitor:
        """Return the visitor who is one of these people, signed in once: nothing here signs out."""
        if who not in self._visitors:
            self._visitors[who] = await Visitor(self.world).sign_in(f"{who}@example.com")
        return self._visitors[who]

    def url(self, page: RoutedPage) -> str:
        """Return a page's path with its parameters filled in."""
        token = self.tokens.get(page.path.split("/")[1], "unknown")
        values = self.values | {"token": token}

        def value(found: re.Match[str]) -> str:
            assert found[1] in values, f"say in People.prepare what {found[0]} stands for"
            return values[found[1]]

        return re.sub(r"\{(\w+):str\}", value, page.path)
