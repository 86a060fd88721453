"""What is done again: a delivery, a batch of one endpoint's, and a part of the log to forget."""

from dataclasses import replace
from datetime import timedelta

import pytest

from service.ledger.database import LedgerUnavailable
from service.webhooks import deliveries, dispatcher
from service.webhooks.sender import EndpointAnswer
from tests.webhooks.setting import HOUR, URL

pytestmark = pytest.mark.server


async def test_the_log_has_a_delivery_as_it_was_made_last(one):
    """A replay shows, with its own time and attempts."""
    partner, endpoint = await one.subscribed()
    await one.claims(partner, "a")
    await one.serve()
    (first,) = await one.queues.delivered("live", endpoint)
    await one.queues.replay("live", endpoint, 1)
    one.sink.answers["clm_a"] = EndpointAnswer(500)
    await one.serve()
    one.sink.answers.clear()
    one.now += HOUR
    await one.serve()
    (last,) = await one.queues.delivered("live", endpoint)
    assert (first["attempts"], last["attempts"]) == (1, 2)
    assert (last["fault"], last["delivered_at"] > first["delivered_at"]) == ("HTTP 500", True)


async def test_what_an_endpoint_refused_once_is_not_its_fault_later(one, monkeypatch):
    """In one of the batches that follow, we cannot sign it: that is no attempt."""
    monkeypatch.setattr(deliveries, "AT_ONCE_MAX", 1)
    partner, endpoint = await one.subscribed()
    parts = one.dispatcher.parts

    async def secrets():
        if one.sink.tried[URL, "clm_b"]:
            raise LedgerUnavailable
        return await parts.secrets()

    async def an_hour_later():
        one.now += HOUR
        return EndpointAnswer(200)

    one.dispatcher.parts = replace(parts, secrets=secrets)
    one.sink.answers |= {"clm_a": EndpointAnswer(500), "clm_b": an_hour_later}
    for name in "ab":  # in this order: those of one transaction are in that of their streams' ids
        await one.claims(partner, name)
    await one.serve()
    (left,) = await one.queues.open("live", endpoint)
    assert (left["subject"], left["attempts"], left["fault"]) == ("clm_a", 1, "HTTP 500")


async def test_old_deliveries_are_forgotten_part_by_part_until_none_is_left(one, monkeypatch):
    """However many an hour are added."""
    monkeypatch.setattr(dispatcher, "LOG_ROWS_MAX", 1)
    partner, endpoint = await one.subscribed()
    await one.claims(partner, "a", "b")
    await one.serve()
    assert len(await one.queues.delivered("live", endpoint)) == 2
    await one.grow_old(timedelta(days=31))
    one.dispatcher._forgets_at = 0.0  # noqa: SLF001 - an hour of the loop's own clock
    for _ in range(2):
        await one.serve()
    assert await one.queues.delivered("live", endpoint) == []
