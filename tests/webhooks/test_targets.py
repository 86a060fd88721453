"""What is kept of the endpoints that events go to."""

import pytest

from service.webhooks import targets
from service.webhooks.targets import Targets
from tests.ledger.samples import CAUSE

pytestmark = pytest.mark.server


async def test_endpoints_that_were_removed_are_forgotten(one, monkeypatch):
    """A partner that adds and removes them again and again fills no memory."""
    partner_id = await one.approved()
    kept = Targets(one.service.endpoint_list, one.service.accounts, one.name)
    monkeypatch.setattr(targets, "KNOWN_SECONDS", -1.0)
    for _ in range(3):
        endpoint_id = await one.endpoint(partner_id)
        assert await kept.of(partner_id, endpoint_id) is not None
        await one.commands.remove(partner_id, endpoint_id, CAUSE)
        assert len(kept) == 1


async def test_one_that_takes_nothing_is_left_alone_until_it_does(one, monkeypatch):
    """Or for a while, after which it is looked at again: then one that was removed is forgotten."""
    partner_id, endpoint_id = await one.subscribed()
    kept = Targets(one.service.endpoint_list, one.service.accounts, one.name)
    assert await kept.closed() == []
    await one.commands.disable(partner_id, endpoint_id, "member", CAUSE)
    assert await kept.of(partner_id, endpoint_id) is None
    assert await kept.closed() == [endpoint_id]
    await one.commands.enable(partner_id, endpoint_id, CAUSE)
    assert await kept.closed() == []
    await one.commands.remove(partner_id, endpoint_id, CAUSE)
    monkeypatch.setattr(targets, "CANNOT_SEND_SECONDS", -1.0)
    assert await kept.of(partner_id, endpoint_id) is None
    assert await kept.closed() == []
