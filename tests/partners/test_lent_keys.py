"""Test keys that the reference's page is lent, one after the other."""

from service.partners import commands, keys
from tests.world import STAFF


async def test_the_next_one_is_found_among_many(in_memory, monkeypatch):
    """Its number follows from those that were lent before, few of which are looked at."""
    partner_id = await in_memory.service.partners.add("Partner", "p@example.com", STAFF)
    await in_memory.service.partners.approve(partner_id, STAFF)
    lent = [await in_memory.service.partners.lend_key(partner_id, STAFF) for _ in range(40)]
    known = (await in_memory.service.partners.look(partner_id)).keys
    assert list(known) == [one.key_id for one in lent]
    assert [key.revoked for key in known.values()] == [True] * 39 + [False]

    derived = []

    def counted(*of):
        derived.append(of)
        return keys.reference_id(*of)

    monkeypatch.setattr(commands, "reference_id", counted)
    await in_memory.service.partners.lend_key(partner_id, STAFF)
    assert len(derived) <= 10
