"""Without PostgreSQL every endpoint answers 503 in time, and recovers when it returns."""

import asyncio
import time
from contextlib import contextmanager

import httpx
import pytest
from structlog.testing import capture_logs

from service.http.admission import IN_FLIGHT_MIN
from service.ledger.database import LedgerUnavailable
from service.ledger.limits import DEADLINE_SECONDS
from tests import runbook
from tests.endpoints import ENDPOINTS
from tests.faults.retried import until_created
from tests.patience import eventually, waiting
from tests.world import STAFF, deadline_of

SECONDS_MAX = 2.0
"""Of waiting, as the loop counts it: what a busy machine adds is not the service's."""


@contextmanager
def outage(faulty, kind, world):
    """Freeze or stop PostgreSQL for a while; yield the count of seconds waited."""
    if kind == "killed":
        faulty.kill()
    else:
        faulty.freeze()
    try:
        with deadline_of(world, DEADLINE_SECONDS), waiting() as waited:
            yield waited
    finally:
        if kind == "killed":
            faulty.revive()
        else:
            faulty.thaw()


async def timed(call, waited):
    """Return a response and the seconds that it waited."""
    begun = waited()
    return await call, waited() - begun


def check_unavailable(answers):
    """Check for the contract's 503 with retry advice, within two seconds."""
    for answer, seconds in answers:
        assert answer.status_code == 503
        assert answer.json()["code"] == "service_unavailable"
        assert int(answer.headers["Retry-After"]) >= 1
        assert seconds < SECONDS_MAX


@pytest.mark.parametrize("kind", ["killed", "frozen"])
async def test_every_endpoint_answers_503_in_time(faulty, faulty_world, partner, kind):
    """With and without open connections: endpoints and the readiness probe, within 2 s."""
    entity_id = await partner.connected_entity()
    for number in range(20):
        await partner.claim(entity_id, f"before-{number}")
    client = faulty_world.client
    calls = [
        lambda one=one, mode=mode: partner.call(one.method, one.path, mode=mode, **one.sent())
        for one in ENDPOINTS.values()
        for mode in ("live", "test")
    ] + [lambda: partner.claim(entity_id, "during"), lambda: client.get("/health/ready")]
    with outage(faulty, kind, faulty_world) as waited:
        check_unavailable(await asyncio.gather(*(timed(call(), waited) for call in calls)))
        live, seconds = await timed(client.get("/health/live"), waited)
        assert (live.status_code, seconds < 0.5) == (200, True)
        scraped, seconds = await timed(faulty_world.scrape(), waited)
        assert ("claim_ledger_database_up" in scraped, seconds < SECONDS_MAX) == (True, True)
    assert (await until_created(partner, entity_id, "during")).status_code in {200, 201}
    assert (await client.get("/health/ready")).status_code == 200


@pytest.mark.parametrize("kind", ["killed", "frozen"])
async def test_fifty_requests_at_once_are_bounded_too(faulty, faulty_world, partner, kind):
    """With more requests than connections each is answered within 2 s, none left behind."""
    entity_id = await partner.connected_entity()
    with outage(faulty, kind, faulty_world) as waited:
        answers = await asyncio.gather(
            *(timed(partner.claim(entity_id, f"{kind}-{number}"), waited) for number in range(50))
        )
        check_unavailable(answers)
    assert (await until_created(partner, entity_id, "after")).status_code == 201
    answers = await asyncio.gather(
        *(partner.claim(entity_id, f"{kind}-{number}") for number in range(50))
    )
    assert {answer.status_code for answer in answers} <= {200, 201}
    for pool in faulty_world.service.modes["live"].ledger.database.pools.values():
        assert pool.connections[0] <= pool.size


async def test_an_outage_in_the_middle_of_requests(faulty, faulty_world, partner):
    """Requests under way when PostgreSQL froze are answered; a retry shows the outcome.

    Authentication may have been answered already: what matters is each step's own deadline. The log
    says why in words that the runbook has.
    """
    entity_id = await partner.connected_entity()
    with deadline_of(faulty_world, DEADLINE_SECONDS), capture_logs() as lines:
        calls = [asyncio.create_task(partner.claim(entity_id, f"mid-{n}")) for n in range(200)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        with outage(faulty, "frozen", faulty_world) as waited:
            answers = await asyncio.gather(*calls)
            # An authentication answered at the last moment is followed by one more deadline.
            assert waited() < 2 * SECONDS_MAX
    codes = {answer.status_code for answer in answers}
    assert 503 in codes
    assert codes <= {201, 503}
    why = {(line["event"], line["error_type"]) for line in lines if "error_type" in line}
    assert "ledger unavailable" in {event for event, _ in why}
    assert {one for one in why if one[1] not in runbook.outages()} == set()
    await until_created(partner, entity_id, "mid-0")
    again: list[httpx.Response] = []
    for first in range(0, 200, IN_FLIGHT_MIN):  # after an outage, as many are admitted for sure
        names = [f"mid-{number}" for number in range(200)][first : first + IN_FLIGHT_MIN]
        again += await asyncio.gather(*(partner.claim(entity_id, name) for name in names))
    assert {answer.status_code for answer in again} <= {200, 201}
    created = [one.json()["claim_id"] for one in answers if one.status_code == 201]
    assert set(created) <= {answer.json()["claim_id"] for answer in again}


async def test_a_transaction_that_freezes_midway_is_given_up_in_time(faulty, faulty_world):
    """Neither the statement nor its ROLLBACK waits for PostgreSQL beyond the deadline."""
    ledger = faulty_world.service.modes["live"].ledger

    async def freeze_midway():
        async with ledger.transaction() as transaction:
            await transaction.now()
            faulty.freeze()
            await transaction.now()

    try:
        with (
            deadline_of(faulty_world, DEADLINE_SECONDS),
            waiting() as waited,
            pytest.raises(LedgerUnavailable),
        ):
            await freeze_midway()
        assert waited() < SECONDS_MAX
    finally:
        faulty.thaw()
    await faulty_world.service.modes["live"].entities.add(
        "After", f"after{time.time_ns()}@example.com", None, STAFF
    )


@pytest.mark.parametrize("kind", ["killed", "frozen"])
async def test_the_followers_go_on_after_an_outage(faulty, faulty_world, partner, kind):
    """Sequencer and subscribers catch up without a restart, and no event is missed."""
    client = faulty_world.client
    with outage(faulty, kind, faulty_world) as waited:
        begun = waited()
        await eventually(lambda: waited() - begun > 0.2)
        assert (await client.get("/health/ready")).status_code == 503

    async def ready():
        return (await client.get("/health/ready")).status_code == 200

    await eventually(ready)
    entity_id = await partner.connected_entity()
    assert (await until_created(partner, entity_id, "follow")).status_code == 201
    database = faulty_world.service.modes["live"].ledger.database

    async def caught_up():
        async with database.writes.connection() as connection:
            left = await connection.fetchval("select count(*) from live.pending")
            behind = await connection.fetchval(
                "select count(*) from live.subscriptions where position <"
                " (select size from live.head)"
            )
        return (left, behind) == (0, 0)

    await eventually(caught_up)
