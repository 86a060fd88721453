"""COMMIT's answer is lost: the outcome is unknown until the request is repeated."""

import asyncio
from collections import Counter

import pytest

from tests.database_proxy import proxied
from tests.faults.recorded import recorded
from tests.world import settings_for, world_on

CUTS = 60


@pytest.fixture
async def cut_world(database_url, tmp_path):
    """Return a service that reaches its database through a proxy, and the proxy.

    What it answers is recorded, and checked at the end.
    """
    async with (
        proxied(database_url) as (proxy, url),
        world_on(settings_for(url, tmp_path), tmp_path, follow=False) as world,
        recorded(world),
    ):
        yield world, proxy


async def until_answered(call):
    """Retry as a partner would; return the statuses, the last of them a success."""
    statuses, claim_id = [], None
    while claim_id is None:
        answer = await call()
        statuses.append(answer.status_code)
        if answer.status_code == 503:
            assert answer.json()["code"] == "service_unavailable"
        else:
            claim_id = answer.json()["claim_id"]
    return statuses, claim_id


async def test_a_lost_commit_makes_exactly_one_claim(cut_world):
    """Of dozens of lost answers, each client that got 503 retries and has one claim."""
    world, proxy = cut_world
    partner, entity_id = await world.connected()
    number = 0
    found: dict[str, str] = {}
    seen: Counter[tuple[int, ...]] = Counter()
    while proxy.cuts < CUTS:
        proxy.cut_commits = 2  # of the two transactions that are under way at once
        names = [f"case-{number + n}" for n in range(4)]
        number += len(names)
        answers = await asyncio.gather(
            *(until_answered(lambda name=name: partner.claim(entity_id, name)) for name in names)
        )
        for name, (statuses, claim_id) in zip(names, answers, strict=True):
            seen[tuple(statuses)] += 1
            found[name] = claim_id
    proxy.cut_commits = 0
    assert sum(statuses.count(503) * times for statuses, times in seen.items()) >= CUTS
    assert all(201 not in statuses[1:] for statuses in seen)  # each 503 had been committed
    again = await asyncio.gather(*(partner.claim(entity_id, name) for name in found))
    assert [answer.json()["claim_id"] for answer in again] == list(found.values())
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        counts = await connection.fetchrow(
            "select (select count(*) from live.claim_list), (select count(distinct"
            " partner_claim_id) from live.claim_list), (select count(*) from live.public_ids"
            " where public_id like 'clm%')"
        )
    assert tuple(counts) == (len(found),) * 3
    open_now, idle = world.service.modes["live"].ledger.database.writes.connections
    assert open_now == idle <= world.service.settings.pool_size


async def test_a_lost_commit_of_an_onboarding_is_found_again(cut_world):
    """Repeating an onboarding whose answer was lost returns the same onboarding."""
    world, proxy = cut_world
    partner = await world.partner()
    for number in range(20):
        body = {
            "partner_user_id": f"u{number}",
            "company_name": "New",
            "user_email": f"new{number}@example.com",
        }
        proxy.cut_commits = 1
        first = await partner.call("POST", "/onboardings", json=body)
        second = await partner.call("POST", "/onboardings", json=body)
        assert (first.status_code, second.status_code) == (503, 200)
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        assert await connection.fetchval("select count(*) from live.onboardings") == 20


async def test_a_connect_request_that_may_have_minted_says_so(cut_world):
    """Its 503 has the rate limit headers, unlike one of a request that nothing was done for."""
    world, proxy = cut_world
    partner = await world.partner()
    proxy.cut_commits = 1
    lost = await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
    proxy.cut_commits = 0
    assert (lost.status_code, lost.json()["code"]) == (503, "service_unavailable")
    assert "X-RateLimit-Limit" in lost.headers
    live = world.service.modes["live"].ledger.database
    async with live.writes.connection() as connection:
        assert await connection.fetchval("select count(*) from live.connect_links") == 1


async def test_connections_cut_between_requests_are_replaced(cut_world):
    """After all its connections were cut, a pool fails at most once for each."""
    world, proxy = cut_world
    partner, entity_id = await world.connected()
    for number in range(10):
        proxy.cut_off()
        await asyncio.sleep(0.01)
        statuses, _ = await until_answered(
            lambda name=f"cut-{number}": partner.claim(entity_id, name)
        )
        assert len(statuses) <= 1 + 2 * world.service.settings.pool_size


async def test_a_connection_ends_and_begins_again_while_commits_are_lost(cut_world):
    """Whatever is accepted meanwhile, nothing is between an end and the next beginning."""
    world, proxy = cut_world
    partner, entity_id = await world.connected()
    for number in range(10):
        proxy.cut_commits = number % 3
        calls = [partner.claim(entity_id, f"case-{number}-{n % 6}") for n in range(12)]
        _, *answers = await asyncio.gather(
            partner.disconnect(entity_id), *calls, return_exceptions=True
        )
        proxy.cut_commits = 0
        await partner.disconnect(entity_id)
        assert (await partner.claim(entity_id, f"after-{number}")).status_code == 403
        assert {one.status_code for one in answers} <= {200, 201, 403, 503}
        await partner.connect(entity_id)
        assert (await partner.claim(entity_id, f"again-{number}")).status_code == 201
        await partner.call("GET", "/claims", params={"entity_id": entity_id, "limit": 5})
