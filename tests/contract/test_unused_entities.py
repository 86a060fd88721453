"""Contract section 1: no answer has the id of a live entity that its partner has not used."""

import random
import re

import pytest

from service.core.errors import Refusal
from service.onboardings.commands import PURPOSE
from tests.contract.event_feed import followed
from tests.world import STAFF

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.followed]

ENTITY_ID = re.compile(r"ent_[0-9a-z]{26}")
STEPS = 60
"""Of each history; of ten kinds, so that each comes several times."""


class Watched:
    """A partner whose answers are looked through: each may name what it has sent before."""

    def __init__(self, partner):
        self.partner, self.used, self.answers = partner, set(), 0

    async def call(self, method, path, **more):
        """Send a request; fail if its answer names an entity that no request has named."""
        answer = await self.partner.call(method, path, **more)
        self.used.update(ENTITY_ID.findall(f"{path} {more}"))
        said = f"{answer.text} {answer.headers}"
        assert set(ENTITY_ID.findall(said)) <= self.used, (method, path, said)
        self.answers += 1
        return answer


class Acts:
    """What may happen between two partners, their customers and the team, in any order."""

    def __init__(self, world, partners, entities, draw):
        self.world, self.partners, self.entities, self.draw = world, partners, entities, draw
        self.live = world.service.modes["live"]
        self.onboarded, self.claims, self.cursors = [], [], dict.fromkeys(partners)

    async def onboard(self, one):
        """Refer a business."""
        email = f"p{self.draw.random()}@example.com"
        body = {"partner_user_id": email, "company_name": "New", "user_email": email}
        answer = (await one.call("POST", "/onboardings", json=body)).json()
        self.onboarded.append((answer["onboarding_id"], email))

    async def finish(self, _one):
        """Finish an onboarding: from now on the entity is there."""
        if self.onboarded:
            onboarding_id, email = self.onboarded.pop()
            secrets = await self.world.service.secrets.get()
            token, visitor = (
                secrets.link_token(PURPOSE, onboarding_id),
                secrets.lookup_email(email),
            )
            done = await self.live.onboardings.complete(token, "req_1", visitor=visitor)
            self.entities.append(done[1])

    async def link(self, one):
        """Ask for a link, which is approved or declined."""
        body = {"partner_user_id": "u"}
        answer = (await one.call("POST", "/connect-requests", json=body)).json()
        token, commands = answer["connect_url"].rpartition("/")[2], self.live.connections
        if self.draw.random() < 0.8:
            await commands.approve(token, self.draw.choice(self.entities), STAFF)
        else:
            await commands.decline(token, STAFF)

    async def disconnect(self, one):
        """End a connection."""
        entity_id, partner_id = self.draw.choice(self.entities), one.partner.partner_id
        await self.live.connections.disconnect(entity_id, partner_id, STAFF)

    async def claim(self, one):
        """Use an entity's id, connected or not."""
        entity_id = self.draw.choice(self.entities)
        body = {
            "entity_id": entity_id,
            "partner_claim_id": f"case-{self.draw.randrange(5)}",
            "defendant": {"name": "Debtor"},
            "invoices": [{"number": "1"}],
        }
        answer = await one.call("POST", "/claims", json=body)
        if answer.is_success:
            self.claims.append(answer.json()["claim_id"])

    async def move(self, _one):
        """Move a claim, whoever's."""
        if self.claims:
            stage = self.draw.choice(["negotiation", "settled"])
            await self.live.claims.move(self.draw.choice(self.claims), stage, STAFF)

    async def show(self, one):
        """Ask for a claim, whoever's."""
        if self.claims:
            await one.call("GET", f"/claims/{self.draw.choice(self.claims)}")

    async def list(self, one):
        """List an entity's claims."""
        await one.call("GET", f"/claims?entity_id={self.draw.choice(self.entities)}")

    async def follow(self, one):
        """Read on, or from the beginning."""
        after = self.cursors[one] if self.draw.random() < 0.7 else None
        query = "" if after is None else f"?after={after}"
        page = (await one.call("GET", f"/events{query}")).json()
        self.cursors[one] = page["next_cursor"]


async def test_no_answer_names_an_entity_that_its_partner_has_not_used(shared):
    """Whatever happens in whatever order; at the end the events are read from the beginning."""
    draw = random.Random(20260301)  # noqa: S311 - a seed, so that a failure comes again
    partners = [Watched(await shared.partner()) for _ in range(2)]
    acts = Acts(shared, partners, [await shared.entity() for _ in range(2)], draw)
    kinds = [getattr(acts, name) for name in vars(Acts) if not name.startswith("_")]
    kinds += [acts.link, acts.link, acts.claim]
    for _ in range(STEPS):
        try:
            await draw.choice(kinds)(draw.choice(partners))
        except Refusal:
            continue
    for one in partners:
        assert one.answers > STEPS / 10
        await followed(one, 2)
    assert acts.claims
