"""How often an endpoint goes to the database, counted on the wire (design, speed to reach).

The budget: `POST /claims` is one read to authenticate, one of what it decides on, and one write,
which locks, looks again, appends, projects and commits; a replay only reads. `GET /claims` is one
read beside authentication.
Statements are prepared once a connection; a warm connection sends nothing else.
"""

from datetime import timedelta

import pytest

from service.evidence.binding import bind_events
from tests.database_proxy import proxied
from tests.ledger.appending import add_event_key
from tests.ledger.samples import CAUSE
from tests.numbering import number
from tests.world import settings_for, world_on

AUTHENTICATE = "-- projections.partners last_events\n"
CONTEXT = "-- service.claims context\n"
WRITE = "-- service.ledger write\n"
PAGE = "-- projections.claim_list page\n"


@pytest.fixture
async def wire(database_url, tmp_path):
    """Return a service whose round trips are counted, and the proxy that counts them.

    Nothing follows the log meanwhile, and each pool has one connection: warm after one use.
    """
    async with proxied(database_url) as (proxy, url):
        settings = settings_for(url, tmp_path, POOL_SIZE="1")
        async with world_on(settings, tmp_path, follow=False) as world:
            yield world, proxy


async def round_trips(proxy, *calls):
    """Return the statements of the last call; those before it warm the connections up."""
    for call in calls:
        proxy.statements.clear()
        answer = await call()
        assert answer.status_code in {200, 201}
    return list(proxy.statements)


def begins(statements, *expected):
    """Return whether there are exactly these statements, each known by its beginning."""
    return [
        want if got.startswith(want) else got
        for got, want in zip(statements, (*expected, *[""] * len(statements)), strict=False)
    ]


async def test_a_retired_event_key_costs_no_round_trip(wire, monkeypatch):
    """Claims of connections from before, and replays of claims from before, come with positions."""
    world, proxy = wire
    live, partner = world.service.ledger("live"), await world.partner()
    entity_id = await partner.connected_entity()
    await partner.claim(entity_id, "before")
    await number(live)
    with monkeypatch.context() as patch:
        patch.setattr("service.ledger.service_keys.SIGNS_AFTER", timedelta())
        patch.setattr("service.evidence.binding.QUIET", timedelta())
        patch.setattr("service.ledger.ledger.UNBOUND_SECONDS", 0)
        await add_event_key(world.service)
        await world.service.secrets.read_events()
        assert await bind_events(live, CAUSE)
        assert (await live.binding()).retired
    claims = [lambda n=n: partner.claim(entity_id, f"case-{n}") for n in range(3)]
    assert begins(await round_trips(proxy, *claims), AUTHENTICATE, CONTEXT, WRITE) == [
        *(AUTHENTICATE, CONTEXT, WRITE)
    ]
    again = [lambda: partner.claim(entity_id, "before")] * 3
    replayed = await round_trips(proxy, *again)
    assert begins(replayed, AUTHENTICATE, CONTEXT) == [AUTHENTICATE, CONTEXT]


async def test_creating_a_claim_is_two_reads_and_one_write(wire):
    """Three round trips, with a first message or without."""
    world, proxy = wire
    partner, entity_id = await world.connected()
    expected = [AUTHENTICATE, CONTEXT, WRITE]
    for message in ("", "unpaid"):
        statements = await round_trips(
            proxy,
            *(
                lambda n=n, message=message: partner.claim(
                    entity_id, f"case-{n}{message}", message=message
                )
                for n in range(3)
            ),
        )
        assert begins(statements, *expected) == expected


async def test_replaying_a_claim_writes_nothing(wire):
    """A replay looks and leaves: two round trips, and no lock."""
    world, proxy = wire
    partner, entity_id = await world.connected()
    statements = await round_trips(proxy, *[lambda: partner.claim(entity_id)] * 3)
    expected = [AUTHENTICATE, CONTEXT]
    assert begins(statements, *expected) == expected


@pytest.mark.parametrize("mode", ["live", "test"])
async def test_starting_an_onboarding_is_two_reads_and_one_write(wire, mode):
    """Three round trips in either mode, and two for a replay."""
    world, proxy = wire
    partner = await world.partner()

    def start(number):
        body = {"company_name": "New", "user_email": f"u{number}@example.com"}
        body["partner_user_id"] = f"u{number}"
        return partner.call("POST", "/onboardings", mode=mode, json=body)

    context = "-- service.onboardings context\n"
    for starts, expected in (
        ((1, 2, 3), [AUTHENTICATE, context, WRITE]),
        ((3, 3), [AUTHENTICATE, context]),
    ):
        statements = await round_trips(proxy, *[lambda nr=nr: start(nr) for nr in starts])
        assert begins(statements, *expected) == expected


@pytest.mark.parametrize("mode", ["live", "test"])
async def test_asking_for_a_connection_is_one_write_and_a_look_at_the_clock(wire, mode):
    """Three round trips; a link of test mode does not expire, and takes two."""
    world, proxy = wire
    partner = await world.partner()
    body = {"partner_user_id": "u", "label": "Shop"}
    statements = await round_trips(
        proxy,
        *[lambda: partner.call("POST", "/connect-requests", mode=mode, json=body)] * 3,
    )
    expected = [AUTHENTICATE, "-- service.ledger now\n", WRITE]
    if mode == "test":
        del expected[1]
    assert begins(statements, *expected) == expected


async def test_listing_claims_is_one_read_beside_authentication(wire):
    """A page takes two round trips, of all users' claims or of one's: who calls, and the page."""
    world, proxy = wire
    partner, entity_id = await world.connected()
    for more in ({}, {"partner_user_id": "u"}):
        query = {"entity_id": entity_id} | more
        statements = await round_trips(
            proxy, *[lambda query=query: partner.call("GET", "/claims", params=query)] * 2
        )
        assert begins(statements, AUTHENTICATE, PAGE) == [AUTHENTICATE, PAGE]


async def test_a_new_connection_looks_no_types_up(wire):
    """What PostgreSQL's own types are like is asked once in a process, not in each connection."""
    world, proxy = wire
    partner, entity_id = await world.connected()
    for reference in ("case-0", "case-1"):
        proxy.statements.clear()
        for pool in world.service.modes["live"].ledger.database.pools.values():
            pool.pool.retire()
        assert (await partner.claim(entity_id, reference)).status_code == 201
    assert {one.partition("\n")[0] for one in proxy.statements if one} == {
        one.strip() for one in (AUTHENTICATE, CONTEXT, WRITE)
    }


async def test_a_request_that_is_refused_early_costs_little(wire):
    """A bad key costs the authenticating read alone, a malformed one nothing."""
    world, proxy = wire
    partner = await world.partner()
    await partner.claim(await partner.connected_entity())
    proxy.statements.clear()
    key = partner.keys["live"]
    bad = key[:-1] + ("x" if key[-1] != "x" else "y")
    first = await world.client.get("/v1/claims", headers={"Authorization": f"Bearer {bad}"})
    assert (first.status_code, len(proxy.statements)) == (401, 1)
    second = await world.client.get("/v1/claims", headers={"Authorization": "Bearer x"})
    assert (second.status_code, len(proxy.statements)) == (401, 1)
