"""People who act in a random order, and the tables that show it."""

import random
from collections.abc import Callable
from functools import partial

from service.core.errors import Refusal
from service.ledger.sequencer import Sequencer
from service.onboardings.commands import PURPOSE
from service.partners.commands import OVERLAPS
from tests.document_store import CONTENT, Documents, reference_to
from tests.patience import eventually
from tests.world import STAFF, Partner, World

PARTNER_TABLES = (
    *("entities", "connections", "onboardings", "connect_links", "claim_list"),
    *("claim_documents", "document_flags", "partner_events"),
)
TABLES = [
    *(f"accounts.{table}" for table in ("partners", "api_keys", "members", "staff")),
    "accounts.webhook_endpoints",
    *(f"{mode}.{table}" for mode in ("live", "test") for table in PARTNER_TABLES),
    *(f"{ledger}.activity" for ledger in ("accounts", "live", "test")),
]
STAGES = ("negotiation", "proceedings", "judgment", "settled", "triage")

CHECKED = """
select
    not exists(select from {0}.document_checks) and not exists(select from {0}.pending)
    and (select position from {0}.subscriptions where name = 'documents')
        = (select size from {0}.head)
"""


class History:
    """People who act in a random order, refusals included."""

    def __init__(self, documents: Documents, seed: int) -> None:
        self.documents = documents
        self.world: World = documents.world
        self.draw = random.Random(seed)  # noqa: S311 - a seed, so that a failure comes again
        self.partners: list[Partner] = []
        self.entities: list[str] = []
        self.claims: list[str] = []
        self.onboardings: list[tuple[str, str]] = []

    async def run(self, steps: int) -> None:
        """Take this many random actions."""
        self.partners = [await self.world.partner() for _ in range(3)]
        self.entities = [await self.world.entity() for _ in range(3)]
        acts: list[Callable] = [
            *(self.claim, self.move, self.move, self.connect, self.disconnect, self.settings),
            *(self.onboard, self.complete, self.decline, self.revoke_key, self.sandbox_claim),
            *(self.claim_with_documents, self.claim_with_documents, self.connect, self.connect),
            *(self.roll_key, self.join, self.leave),
            *(self.staff, self.endpoint),
        ]
        for _ in range(steps):
            try:
                await self.draw.choice(acts)()
            except Refusal:
                continue
        await self.world.service.partners.revoke(self.partners[0].partner_id, STAFF)

    async def checked(self) -> None:
        """Wait until what is found in documents has its events, and these have numbers."""
        for parts in self.world.service.modes.values():
            async with parts.ledger.database.reads.connection() as connection:
                await eventually(partial(connection.fetchval, CHECKED.format(parts.ledger.name)))

    async def claim(self) -> None:
        """Create a claim, or replay one."""
        answer = await self._partner.claim(self._entity, f"case-{self.draw.randrange(30)}")
        if answer.status_code == 201:
            self.claims.append(answer.json()["claim_id"])

    async def claim_with_documents(self) -> None:
        """Upload, and create a claim with it, in either mode."""
        mode, partner, entity_id = self.draw.choice(["live", "test"]), self._partner, self._entity
        if mode == "test":
            ids = await partner.sandbox()
            entity_id = ids.connected_entity_id
        reference = f"with-{self.draw.randrange(30)}"
        refs = []
        for _ in range(self.draw.randrange(1, 4)):
            minted = await self.documents.mint(partner, entity_id, reference, mode=mode)
            if minted.status_code != 201:
                return
            content = self.draw.choice([CONTENT, b"not what it says"])
            await self.documents.put(minted, content)
            refs.append(reference_to(minted))
        await partner.claim(entity_id, reference, document_refs=refs, mode=mode)

    async def sandbox_claim(self) -> None:
        """Create a claim and a link in test mode."""
        partner = self._partner
        ids = await partner.sandbox()
        await partner.claim(ids.connected_entity_id, f"case-{self.draw.random()}", mode="test")
        body = {"partner_user_id": str(self.draw.random())}
        await partner.call("POST", "/connect-requests", mode="test", json=body)

    async def endpoint(self) -> None:
        """Add a webhook endpoint, and do whatever can be done with one."""
        partner_id, endpoints = self._partner.partner_id, self.world.service.endpoints
        endpoint_id, url = endpoints.new_endpoint_id(), "https://example.com/hooks"
        one = (partner_id, endpoint_id)
        await endpoints.add(*one, "test", url, ["claim.created"], STAFF)
        await endpoints.change(*one, f"{url}/other", [], STAFF)
        await endpoints.rotate(*one, 2, STAFF)
        await endpoints.disable(*one, "failing", STAFF)
        if self.draw.random() < 0.5:
            await endpoints.enable(*one, STAFF)
        if self.draw.random() < 0.5:
            await endpoints.remove(*one, STAFF)

    async def move(self) -> None:
        """Move a claim."""
        if self.claims:
            claims = self.world.service.modes["live"].claims
            await claims.move(self.draw.choice(self.claims), self.draw.choice(STAGES), STAFF)

    async def connect(self) -> None:
        """Have a link approved."""
        await self._partner.connect(self._entity)

    async def disconnect(self) -> None:
        """End a connection."""
        await self._partner.disconnect(self._entity)

    async def decline(self) -> None:
        """Have a link declined."""
        body = {"partner_user_id": "u", "label": "for people"}
        answer = await self._partner.call("POST", "/connect-requests", json=body)
        token = answer.json()["connect_url"].rpartition("/")[2]
        await self.world.service.modes["live"].connections.decline(token, STAFF)

    async def settings(self) -> None:
        """Change a partner's settings."""
        await self.world.service.partners.change_settings(
            self._partner.partner_id, STAFF, return_link=self.draw.random() < 0.5
        )

    async def onboard(self) -> None:
        """Start an onboarding, or replay one."""
        number = self.draw.randrange(20)
        body = {
            "partner_user_id": f"u{number}",
            "company_name": "New",
            "user_email": f"new{number}@example.com",
        }
        mode = self.draw.choice(["live", "test"])
        answer = await self._partner.call("POST", "/onboardings", mode=mode, json=body)
        if answer.status_code == 201 and mode == "live":
            self.onboardings.append((answer.json()["onboarding_id"], body["user_email"]))

    async def complete(self) -> None:
        """Finish an onboarding."""
        if self.onboardings:
            secrets = await self.world.service.secrets.get()
            onboarding_id, email = self.draw.choice(self.onboardings)
            token, visitor = secrets.link_token(PURPOSE, onboarding_id), secrets.lookup_email(email)
            live = self.world.service.modes["live"].onboardings
            await live.complete(token, "req_1", visitor=visitor)

    async def roll_key(self) -> None:
        """Issue a key and roll it; perhaps revoke it before its end."""
        partners, partner_id = self.world.service.partners, self._partner.partner_id
        issued = await partners.issue_key(partner_id, "live", STAFF)
        overlap = self.draw.choice(list(OVERLAPS.values()))
        await partners.roll_key(partner_id, issued.key_id, overlap, STAFF)
        if self.draw.random() < 0.5:
            await partners.revoke_key(partner_id, issued.key_id, STAFF)

    async def join(self) -> None:
        """Add somebody to a partner's team, or repeat it."""
        email = f"dev{self.draw.randrange(5)}@example.com"
        await self.world.service.partners.add_member(self._partner.partner_id, email, STAFF)

    async def leave(self) -> None:
        """Remove somebody from a partner's team, unless they are the last."""
        partner_id = self._partner.partner_id
        for row in await self.world.service.partner_list.members(partner_id):
            await self.world.service.partners.remove_member(partner_id, row["member_id"], STAFF)

    async def staff(self) -> None:
        """Add a person to the service's team, or remove one."""
        staff, email = self.world.service.staff, f"team{self.draw.randrange(5)}@example.com"
        if self.draw.random() < 0.6:
            await staff.add(email, STAFF)
        else:
            await staff.remove(email, STAFF)

    async def revoke_key(self) -> None:
        """Issue a key and revoke it."""
        partner_id = self._partner.partner_id
        issued = await self.world.service.partners.issue_key(partner_id, "live", STAFF)
        await self.world.service.partners.revoke_key(partner_id, issued.key_id, STAFF)

    @property
    def _partner(self) -> Partner:
        return self.draw.choice(self.partners)

    @property
    def _entity(self) -> str:
        return self.draw.choice(self.entities)


async def number_all(ledger):
    """Number waiting events."""
    sequencer = Sequencer(ledger)
    while (await sequencer.lag()).waiting:
        await sequencer.step()
