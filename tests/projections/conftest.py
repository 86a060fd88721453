"""A service with claims to rebuild read models from."""

import pytest

from tests.world import STAFF


@pytest.fixture
async def claims(world):
    """Return (partner, entity id, ids of twenty claims), two of which have moved."""
    partner, entity_id = await world.connected()
    made = [(await partner.claim(entity_id, f"case-{n}")).json()["claim_id"] for n in range(20)]
    for claim_id in made[:2]:
        await world.service.modes["live"].claims.move(claim_id, "negotiation", STAFF)
    return partner, entity_id, made
