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
