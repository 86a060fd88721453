"""How often a partner's people change its endpoints, and what each change costs to decide on."""

import pytest

from service.core.errors import Refusal
from service.facts import changes
from service.facts.endpoints import EndpointAdded, endpoints_stream
from service.ledger.events import Cause
from service.ledger.writing import Append
from tests.ledger.decoded import decoded
from tests.world import STAFF

MEMBER = Cause("member:per_1", "req_1")


async def test_endpoints_are_changed_so_often_in_a_day(in_memory, monkeypatch):
    """What sends less is always possible; and no change costs what those before it did."""
    accounts, endpoints = in_memory.service.accounts, in_memory.service.endpoints
    partner_id, endpoint_id = "ptn_endpoints", endpoints.new_endpoint_id()
    added = EndpointAdded(partner_id, endpoint_id, "test", 0)
    async with accounts.transaction() as transaction:
        await transaction.append(Append(endpoints_stream(partner_id), 0, [added], STAFF))
    monkeypatch.setattr(changes, "CHANGES_MAX", 20)
    for version in range(2, 42):
        with decoded() as topics:
            await endpoints.rotate(partner_id, endpoint_id, version, MEMBER)
        assert len(topics) == 1
    with pytest.raises(Refusal, match="rate_limited"):
        await endpoints.rotate(partner_id, endpoint_id, 42, MEMBER)
    await endpoints.disable(partner_id, endpoint_id, "member", MEMBER)
    with pytest.raises(Refusal, match="rate_limited"):
        await endpoints.enable(partner_id, endpoint_id, MEMBER)
    await endpoints.enable(partner_id, endpoint_id, STAFF)
    await endpoints.remove(partner_id, endpoint_id, MEMBER)


async def test_endpoints_of_live_mode_are_counted_by_themselves(in_memory, monkeypatch):
    """Changes of the others take no proof; and a secret is rotated when they are used up."""
    accounts, endpoints = in_memory.service.accounts, in_memory.service.endpoints
    ids = {mode: endpoints.new_endpoint_id() for mode in ("live", "test")}
    added = [EndpointAdded("ptn_modes", one, mode, 0) for mode, one in ids.items()]
    async with accounts.transaction() as transaction:
        await transaction.append(Append(endpoints_stream("ptn_modes"), 0, added, STAFF))
    monkeypatch.setattr(changes, "CHANGES_MAX", 4)

    async def turned(mode):
        """Pause and resume an endpoint, which changes nothing else."""
        await endpoints.disable("ptn_modes", ids[mode], "member", MEMBER)
        await endpoints.enable("ptn_modes", ids[mode], MEMBER)

    for mode in ("test", "live"):
        for _ in range(4):
            await turned(mode)
        with pytest.raises(Refusal, match="rate_limited"):
            await turned(mode)
        await endpoints.rotate("ptn_modes", ids[mode], 2, MEMBER)
