"""Commands that meet at one stream, one link, one business: one of them comes first."""

import asyncio
import random
from collections import Counter

import msgspec
import pytest

from service.claims.wire import ClaimRequest
from service.core.errors import Refusal
from service.facts.caller import Caller
from service.ledger.sequencer import Sequencer
from service.onboardings.commands import PURPOSE
from tests.patience import eventually
from tests.world import STAFF, Partner, claim_body, settings_for, world_on

pytestmark = pytest.mark.followed

ORDERED = """
select e.topic from live.events as e join live.log as l using (append_id)
where e.topic in ('ClaimCreated', 'EntityDisconnected', 'EntityConnected')
order by {order}
"""


async def outcomes(*commands):
    """Run commands at once; answer what each came to, a refusal by its code."""
    answers = await asyncio.gather(*commands, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Refusal):
            raise answer
    return [answer.code if isinstance(answer, Refusal) else answer for answer in answers]


async def rows_of(service, query):
    """Return the rows of a query on the live ledger."""
    async with service.modes["live"].ledger.database.writes.connection() as connection:
        return await connection.fetch(query)


@pytest.fixture
async def two_worlds(world, database_url, tmp_path):
    """Return two services on one database."""
    mail_dir = tmp_path / "second"
    async with world_on(settings_for(database_url, mail_dir), mail_dir) as second:
        yield world, second


async def test_64_identical_claims_make_one(world):
    """One request creates the claim, sixty-three are replays of it."""
    partner, entity_id = await world.connected()
    answers = await asyncio.gather(*(partner.claim(entity_id, message="m") for _ in range(64)))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 63}
    assert len({answer.json()["claim_id"] for answer in answers}) == 1
    (created,) = [answer for answer in answers if answer.status_code == 201]
    assert created.json()["message_id"] is not None
    count = await rows_of(world.service, "select count(*) from live.claim_list")
    assert count[0][0] == 1


async def test_64_identical_claims_at_two_services_make_one(two_worlds):
    """Two processes on one database agree: the stream's own key decides."""
    partner = await two_worlds[0].partner()
    other = Partner(two_worlds[1], partner.partner_id, partner.keys)
    entity_id = await partner.connected_entity()
    for number in range(5):
        answers = await asyncio.gather(
            *(one.claim(entity_id, f"case-{number}") for one in [partner, other] * 32)
        )
        assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 63}
        assert len({answer.json()["claim_id"] for answer in answers}) == 1


async def test_different_bodies_at_once_make_one_claim_and_record_each_mismatch_once(world):
    """Whichever body comes first is the claim; every other body is recorded a single time."""
    partner, entity_id = await world.connected()
    answers = await asyncio.gather(
        *(partner.claim(entity_id, message=f"m{number % 4}") for number in range(32))
    )
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 31}
    topics = await rows_of(
        world.service,
        "select count(*) from live.events where topic = 'ClaimReplayMismatched'",
    )
    assert topics[0][0] == 3


@pytest.mark.parametrize("same_entity", [True, False], ids=["one entity", "many entities"])
async def test_64_approvals_of_one_link_make_one_connection(world, same_entity):
    """One approval wins, whatever entity it is for; the others find the link redeemed."""
    partner = await world.partner()
    live = world.service.modes["live"].connections
    for _ in range(10 if same_entity else 3):
        first = await world.entity()
        entities = [first if same_entity else await world.entity() for _ in range(64)]
        answer = await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
        token = answer.json()["connect_url"].rpartition("/")[2]
        found = await outcomes(*(live.approve(token, entity_id, STAFF) for entity_id in entities))
        assert Counter(found) == {partner.partner_id: 1, "connect_token_already_redeemed": 63}


async def test_two_links_of_one_partner_connect_an_entity_once(world):
    """The second of two links for one entity finds it linked, and stays usable for another."""
    partner = await world.partner()
    entity_id = await world.entity()
    live = world.service.modes["live"].connections
    answers = [
        await partner.call("POST", "/connect-requests", json={"partner_user_id": "u"})
        for _ in range(2)
    ]
    tokens = [answer.json()["connect_url"].rpartition("/")[2] for answer in answers]
    found = await outcomes(*(live.approve(token, entity_id, STAFF) for token in tokens))
    assert Counter(found) == {partner.partner_id: 1, "entity_already_linked": 1}
    unused = tokens[found.index("entity_already_linked")]
    assert await live.approve(unused, await world.entity(), STAFF) == partner.partner_id


async def test_no_claim_follows_its_disconnection(two_worlds):
    """In the order of appending and in that of the log, claims are made while connected alone.

    Claims at two services race disconnections and new approvals, some hundreds of times. Where a
    claim guards no connection, or takes no lock, one or two in each round follow a disconnection.
    """
    draw = random.Random(20260301)  # noqa: S311 - a seed, so that a failure comes again
    world, second = two_worlds
    partner = await world.partner()
    partners = [partner, Partner(second, partner.partner_id, partner.keys)]
    entity_id = await partner.connected_entity()
    codes: Counter[str] = Counter()
    rounds = 0
    # A busy machine mixes them unevenly: go on until both have happened often enough.
    while rounds < 60 or min(codes["created"], codes["partner_disconnected"]) <= 40:
        assert rounds < 400, f"{codes}"
        number, rounds = rounds, rounds + 1
        claims = [
            asyncio.create_task(_claim(partners[n % 2], entity_id, f"{number}-{n}", draw))
            for n in range(6)
        ]
        *made, _ = await asyncio.gather(*claims, _disconnect(partner, entity_id, draw, claims))
        claim = _claim(partners[1], entity_id, f"{number}-r", draw)
        again, _ = await asyncio.gather(claim, partner.connect(entity_id))
        codes.update([*made, again])
    assert codes["created"] + codes["partner_disconnected"] == rounds * 7
    sequencer = Sequencer(world.service.modes["live"].ledger)
    while (await sequencer.lag()).waiting:
        await sequencer.step()
    for order in ("e.append_id", "l.position"):
        rows = await rows_of(world.service, ORDERED.format(order=order))
        assert len(rows) == codes["created"] + 2 * rounds + 1
        _check_connected(row["topic"] for row in rows)


async def test_a_process_that_stands_still_writes_nothing_twice(two_worlds, monkeypatch):
    """What it decided before is decided again when it goes on, on what others did meanwhile."""
    frozen, other = two_worlds
    partner = await frozen.partner()
    elsewhere = Partner(other, partner.partner_id, partner.keys)
    entities = [await partner.connected_entity() for _ in range(3)]
    ledger, goes_on, decided = frozen.service.modes["live"].ledger, asyncio.Event(), []
    write = ledger.write

    async def stand_still(proposals):
        decided.extend(proposals)
        await goes_on.wait()
        return await write(proposals)

    monkeypatch.setattr(ledger, "write", stand_still)
    given = [(entity_id, f"case-{nr}") for nr in range(5) for entity_id in entities]
    sent = [asyncio.create_task(partner.claim(*claim)) for claim in given]
    await eventually(lambda: len(decided) > 1)
    retried = [await elsewhere.claim(*claim) for claim in given[:-1]]
    assert {answer.status_code for answer in retried} == {201}
    await elsewhere.disconnect(entities[-1])
    goes_on.set()
    answers = await asyncio.gather(*sent)
    for (entity_id, _), answer, retry in zip(given, answers, retried, strict=False):
        if entity_id == entities[-1]:
            assert answer.json()["code"] == "partner_disconnected"
        else:
            assert (answer.status_code, answer.json()["claim_id"]) == (
                200,
                retry.json()["claim_id"],
            )
    assert answers[-1].json()["code"] == "partner_disconnected"
    (created,) = await rows_of(
        frozen.service, "select count(*) from live.events where topic = 'ClaimCreated'"
    )
    assert created[0] == len(retried)


async def test_claims_of_a_megabyte_go_beside_small_ones(world, monkeypatch):
    """No batch holds more than one of them, and at most one such batch runs at a time."""
    partner, entity_id = await world.connected()
    live = world.service.modes["live"]
    caller = Caller(partner.partner_id, "key_1", "live", 0, False, False, "req_1")
    batches, running, running_max = [], 0, 0
    write = live.ledger.write

    async def measured(proposals):
        nonlocal running, running_max
        sizes = [len(repr(one.appends[0].events[0])) for one in proposals]
        batches.append(sizes)
        running += max(sizes) > 500_000
        running_max = max(running_max, running)
        try:
            return await write(proposals)
        finally:
            running -= max(sizes) > 500_000

    monkeypatch.setattr(live.ledger, "write", measured)
    filler = [{"number": str(nr), "summary": "x" * 950} for nr in range(1000)]

    def create(reference, **more):
        body = claim_body(entity_id, reference, **more)
        request = msgspec.convert(body, ClaimRequest)
        return live.claims.create(caller, request, len(msgspec.json.encode(body)))

    small = [create(f"small-{nr}") for nr in range(40)]
    large = [create(f"large-{nr}", invoices=filler) for nr in range(12)]
    made = await asyncio.gather(*large, *small)
    assert len({one.claim_id for one in made}) == 52
    assert running_max == 1
    assert all(len(sizes) == 1 for sizes in batches if max(sizes) > 500_000)
    first_small = next(nr for nr, sizes in enumerate(batches) if max(sizes) < 500_000)
    assert first_small <= 2


async def test_an_onboarding_started_twice_at_once_is_one(world):
    """One request starts it, the others are replays, and one mail is asked for."""
    partner = await world.partner()
    body = {"partner_user_id": "u1", "company_name": "New", "user_email": "new@example.com"}
    answers = await asyncio.gather(
        *(partner.call("POST", "/onboardings", json=body) for _ in range(16))
    )
    assert Counter(answer.status_code for answer in answers) == {201: 1, 200: 15}
    assert len({answer.json()["onboarding_id"] for answer in answers}) == 1
    counts = await rows_of(
        world.service,
        "select (select count(*) from live.onboardings), (select count(*) from live.entities)",
    )
    assert tuple(counts[0]) == (1, 1)


@pytest.mark.parametrize("shared", ["user_email", "company_number"])
async def test_of_two_onboardings_of_one_business_one_finishes(world, shared):
    """Unfinished ones do not block each other; the second to finish is refused."""
    live = world.service.modes["live"].onboardings
    secrets = await world.service.secrets.get()
    for number in range(4):
        tokens = []
        for side in "ab":
            partner = await world.partner()
            body = {
                "partner_user_id": f"u-{number}",
                "company_name": "New",
                "user_email": f"{side}{number}@example.com",
                "company_number": f"{side} {number}",
            } | {shared: f"same{number}@example.com"}
            answer = await partner.call("POST", "/onboardings", json=body)
            tokens.append(secrets.link_token(PURPOSE, answer.json()["onboarding_id"]))
        found = await outcomes(*(live.complete(token, "req_1") for token in tokens))
        assert Counter(map(type, found)) == {tuple: 1, str: 1}
        assert "onboarding_unavailable" in found


async def test_one_magic_link_finishes_once(world):
    """Of many who follow one link at once a single one finishes."""
    partner = await world.partner()
    body = {"partner_user_id": "u1", "company_name": "New", "user_email": "new@example.com"}
    answer = await partner.call("POST", "/onboardings", json=body)
    secrets = await world.service.secrets.get()
    token = secrets.link_token(PURPOSE, answer.json()["onboarding_id"])
    live = world.service.modes["live"].onboardings
    found = await outcomes(*(live.complete(token, "req_1") for _ in range(16)))
    assert Counter(map(str, found))["magic_link_already_used"] == 15


async def test_a_business_is_added_once(world):
    """Of several `entities add` with one email address at once, in any case, one succeeds."""
    live = world.service.modes["live"].entities
    for number in range(10):
        found = await outcomes(
            *(live.add("Business", f"{name}{number}@example.com", None, STAFF) for name in "aAaA")
        )
        assert found.count("onboarding_unavailable") == 3


async def test_a_claim_moved_by_many_at_once_keeps_every_move(world):
    """Moves that meet are decided one after another; the stream has no gap and no fork."""
    partner = await world.partner()
    created = await partner.claim(await partner.connected_entity())
    claims = world.service.modes["live"].claims
    claim_id = created.json()["claim_id"]
    stages = ["negotiation", "proceedings", "judgment", "settled"]
    await asyncio.gather(*(claims.move(claim_id, stage, STAFF) for stage in stages))
    claim = await claims.show(claim_id)
    assert (claim.version, claim.stage in stages) == (5, True)
    listed = await rows_of(world.service, "select stage from live.claim_list")
    assert listed[0]["stage"] == claim.stage


async def _claim(partner, entity_id, reference, draw):
    await asyncio.sleep(draw.random() * 0.006)
    answer = await partner.claim(entity_id, reference)
    return "created" if answer.status_code == 201 else answer.json()["code"]


async def _disconnect(partner, entity_id, draw, claims):
    if draw.random() < 0.5:  # a busy machine lets a disconnection overtake all claims, otherwise
        await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(draw.random() * 0.006)
    await partner.disconnect(entity_id)


def _check_connected(topics):
    connected = False
    for topic in topics:
        if topic == "ClaimCreated":
            assert connected
        else:
            connected = topic == "EntityConnected"
