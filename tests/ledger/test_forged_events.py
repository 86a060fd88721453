"""An insider with a ledger's role writes to its log by whatever rights the role has.

Nothing of it is numbered, signed, published or believed; it is kept aside, and the log goes on.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import psycopg
import pytest
from asyncpg import CheckViolationError
from psycopg.errors import InsufficientPrivilege, SerializationFailure

from service.claims.hand_overs import HandOverQueue, HandOvers
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.ledger_verifier import verify_ledger
from service.facts.claims import FirstMessagePosted, claim_stream
from service.facts.lineages import lineage_stream
from service.facts.onboardings import onboarding_stream
from service.facts.partners import ApiKeyIssued, partner_stream
from service.ledger.binding import UnboundEvent
from service.ledger.encryption import KeyUnknown
from service.ledger.events import Meta
from service.ledger.following.runner import Subscription
from service.ledger.merkle import CompactRange
from service.ledger.queue_runner import QueueRunner
from service.ledger.sequencer import HeadAltered, Sequencer
from service.partners.keys import Token, hash_secret
from tests.databases import login_url
from tests.evidence.sealed_log import KEY
from tests.ledger.raw_events import (
    RawEvent,
    append_with_macs,
    number_past_the_sequencer,
    write_raw,
)
from tests.ledger.samples import CAUSE
from tests.numbering import number
from tests.patience import PATIENCE_SECONDS, eventually
from tests.tables import every_row
from tests.world import STAFF

OF_ANOTHER = {
    "append_id": "append_id + 1",
    "originator_id": "gen_random_uuid()",
    "originator_version": "originator_version + 1",
    "topic": "topic || 'x'",
    "state": "state || '\\x20'",
    "mac": "null",
}
"""What each column of an event is not."""
ONBOARDING = {"partner_user_id": "u1", "company_name": "New", "user_email": "new@example.com"}
ASIDE = "select originator_version, topic, reason from accounts.set_aside order by id"
WAITING = (
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
LOG = "select e.topic from accounts.log as l join accounts.events as e using (append_id) order by 1"


async def forge(ledger, event, mac=None):
    """Write an event as the ledger's role can: by the function, without the key."""
    async with ledger.transaction() as transaction:
        (append_id,) = await append_with_macs(transaction, [event], [mac])
    return append_id


@pytest.fixture
async def partner_id(service):
    """Return an approved partner."""
    found = await service.partners.add("Partner", "p@example.com", CAUSE)
    await service.partners.approve(found, STAFF)
    await number(service.accounts)
    return found


@pytest.mark.parametrize("mac", [None, b"", bytes(33), b"\1" + bytes(32), b"\1" * 64])
async def test_a_forged_key_is_set_aside_and_the_log_goes_on(service, owner, partner_id, mac):
    """Whatever its MAC is: it gets no number, and the next event of its stream does."""
    accounts = service.accounts
    token = Token("live", partner_id, "key_forged", "secret")
    forged = ApiKeyIssued(
        partner_id=partner_id,
        key_id=token.key_id,
        mode="live",
        secret_hash=hash_secret(b"no pepper", token),
    )
    stream = partner_stream(partner_id)
    meta = Meta(service.clock(), STAFF.actor, STAFF.request_id, accounts.name)
    state = accounts.codec.encode(stream, 3, forged, meta, None)
    await forge(accounts, RawEvent(stream, 3, "ApiKeyIssued", state), mac)
    with pytest.raises(UnboundEvent):
        await service.partners.issue_key(partner_id, "live", STAFF)
    await number(accounts)
    issued = await service.partners.issue_key(partner_id, "live", STAFF)
    await number(accounts)
    assert owner.execute(ASIDE).fetchall() == [(3, "ApiKeyIssued", "mac")]
    numbered = [topic for (topic,) in owner.execute(LOG).fetchall()]
    assert numbered == ["ApiKeyIssued", "PartnerApplied", "PartnerApproved"]
    assert set((await service.partners.look(partner_id)).keys) == {issued.key_id}
    assert owner.execute("select count(*) from accounts.pending").fetchone() == (0,)


async def test_what_was_decided_on_a_forged_event_is_set_aside_with_it(service, owner, partner_id):
    """The order within a stream is kept: nothing is numbered behind an event that is not there."""
    accounts, stream = service.accounts, partner_stream(partner_id)
    await forge(accounts, RawEvent(stream, 3, "PartnerRevoked", b"{}"))
    await write_raw(accounts, RawEvent(stream, 4, "PartnerApproved", b"{}"))
    await number(accounts)
    assert owner.execute(ASIDE).fetchall() == [
        (3, "PartnerRevoked", "mac"),
        (4, "PartnerApproved", "follows"),
    ]


async def test_an_event_of_another_stream_version_topic_or_ledger_does_not_pass(
    service, owner, partner_id
):
    """A MAC is of one event: copied to another it is none."""
    accounts, test = service.accounts, service.ledger("test")
    stream, other = partner_stream(partner_id), partner_stream("other")
    state, mac = owner.execute(
        "select state, mac from accounts.events where originator_version = 2"
    ).fetchone()
    for event in (
        RawEvent(stream, 3, "PartnerApproved", state),
        RawEvent(other, 2, "PartnerApproved", state),
        RawEvent(stream, 4, "PartnerRevoked", state),
        RawEvent(stream, 5, "PartnerApproved", state + b" "),
    ):
        await forge(accounts, event, mac)
    await forge(test, RawEvent(stream, 2, "PartnerApproved", state), mac)
    await number(accounts)
    await number(test)
    counts = "select (select count(*) from {0}.set_aside), (select count(*) from {0}.log)"
    assert owner.execute(counts.format("accounts")).fetchone() == (4, 2)
    assert owner.execute(counts.format("test")).fetchone() == (1, 0)


@pytest.mark.parametrize("in_transaction", [False, True])
async def test_a_numbered_event_in_the_queue_stops_nothing(
    service, owner, partner_id, in_transaction
):
    """It is taken out of the queue, and what waits behind it is numbered."""
    accounts = service.accounts
    owner.execute("insert into accounts.pending select append_id from accounts.log")
    await service.partners.revoke(partner_id, STAFF)
    if in_transaction:
        async with accounts.transaction() as transaction:
            assert await Sequencer(accounts).number(transaction.connection) == 0
        assert owner.execute("select count(*) from accounts.pending").fetchone() == (1,)
    await number(accounts)
    assert owner.execute("select count(*) from accounts.log").fetchone() == (3,)
    assert owner.execute(ASIDE).fetchall() == []


async def test_a_head_that_was_set_back_is_named(service, owner, partner_id):
    """Nothing can be numbered, and it is not taken for another command that came first."""
    empty = CompactRange(0).to_bytes()
    owner.execute("update accounts.head set size = 0, tree = %s", (empty,))
    await service.partners.revoke(partner_id, STAFF)
    with pytest.raises(HeadAltered):
        await Sequencer(service.accounts).step()


async def test_garbage_in_the_stream_of_lineages_stops_nothing(service, owner):
    """Neither numbering nor, later, checkpoints and exports: they never see it."""
    accounts = service.accounts
    await forge(accounts, RawEvent(lineage_stream("accounts"), 1, "LineageBegun", b"garbage"))
    await number(accounts)
    async with accounts.transaction() as transaction:
        assert await transaction.read(lineage_stream("accounts")) == []
    assert owner.execute(ASIDE).fetchall() == [(1, "LineageBegun", "mac")]


def test_the_role_can_neither_write_the_log_past_the_function_nor_remove_from_it(database_url):
    """It cannot choose an append_id, leave out the queue, or queue what is no event."""
    with psycopg.connect(database_url, autocommit=True) as insider:
        for role in ("accounts", "live", "test"):
            insider.execute(f"set role claim_ledger_{role}")
            for statement in (
                "insert into {0}.events values (default, gen_random_uuid(), 1, 'ClaimCreated', '')",
                "insert into {0}.pending values (1)",
                "insert into {0}.set_aside (append_id, reason) values (1, 'gone')",
                "delete from {0}.set_aside",
                "delete from {0}.events",
                "update {0}.events set mac = null",
            ):
                with pytest.raises(InsufficientPrivilege):
                    insider.execute(statement.format(role))
            insider.execute("reset role")


async def test_a_queue_without_its_event_does_not_stop_the_log(service, owner, partner_id):
    """What is queued and not there is noted, and what follows is numbered."""
    owner.execute("insert into accounts.pending values (1000000)")
    await service.partners.revoke(partner_id, STAFF)
    await number(service.accounts)
    assert owner.execute("select append_id, reason from accounts.set_aside").fetchall() == [
        (1_000_000, "gone")
    ]
    assert owner.execute("select size from accounts.head").fetchone() == (3,)


async def test_only_what_has_no_number_leaves_and_only_as_it_was(service, owner, partner_id):
    """The function refuses a numbered event, and nobody else removes one, the owner included."""
    append_id = owner.execute("select min(append_id) from accounts.log").fetchone()[0]
    owner.execute("insert into accounts.pending values (%s)", [append_id])
    assert owner.execute("select accounts.set_aside_events(%s)", [[append_id]]).fetchone() == (0,)
    assert owner.execute("delete from accounts.pending returning append_id").fetchone(), "not gone"
    await service.partners.revoke(partner_id, STAFF)
    (waiting,) = owner.execute("select append_id from accounts.pending").fetchone()
    with owner.transaction(), suppress(InsufficientPrivilege):
        owner.execute("set local claim_ledger.sets_aside = 'on'")
        owner.execute("delete from accounts.events")
    with every_row() as row:
        for one, column in ((append_id, None), *((waiting, name) for name in OF_ANOTHER)):
            with row(column), pytest.raises(InsufficientPrivilege):
                leave(owner, one, column)
    assert owner.execute("select count(*) from accounts.events").fetchone() == (3,)
    leave(owner, waiting)
    assert owner.execute("select count(*) from accounts.events").fetchone() == (2,)


def leave(owner, append_id, other=None):
    """Keep an event aside as it is, but for one column, and delete it, as the function does."""
    columns = ", ".join(OF_ANOTHER)
    kept = ", ".join(OF_ANOTHER[name] if name == other else name for name in OF_ANOTHER)
    with owner.transaction():
        owner.execute(
            f"insert into accounts.set_aside ({columns}, reason) select {kept}, 'mac'"  # noqa: S608 - ours
            " from accounts.events where append_id = %s",
            [append_id],
        )
        owner.execute("set local claim_ledger.sets_aside = 'on'")
        owner.execute("delete from accounts.events where append_id = %s", [append_id])


async def test_an_older_snapshot_sets_nothing_aside_that_has_a_number_by_now(
    service, owner, database_url, partner_id
):
    """The function does not see the number then, but numbering has changed the head: it fails."""
    await service.partners.revoke(partner_id, STAFF)
    (append_id,) = owner.execute("select append_id from accounts.pending").fetchone()
    with psycopg.connect(login_url(database_url, "accounts")) as insider:
        insider.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        insider.execute("select 1")
        await number(service.accounts)
        with pytest.raises(SerializationFailure):
            insider.execute("select accounts.set_aside_events(%s)", [[append_id]])
    assert owner.execute("select count(*) from accounts.events").fetchone() == (3,)
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (0,)


async def test_what_is_being_numbered_is_not_set_aside(service, owner, database_url, partner_id):
    """The function waits for whoever numbers, and then sees the number."""
    accounts = service.accounts
    await service.partners.revoke(partner_id, STAFF)
    (append_id,) = owner.execute("select append_id from accounts.pending").fetchone()
    insider = await asyncpg.connect(login_url(database_url, "accounts"))
    try:
        async with accounts.transaction(background=PATIENCE_SECONDS) as transaction:
            assert await Sequencer(accounts).number(transaction.connection) == 1
            setting_aside = asyncio.create_task(
                insider.fetchval("select accounts.set_aside_events($1)", [append_id])
            )
            await eventually(lambda: owner.execute(WAITING).fetchall())
        assert await setting_aside == 0
    finally:
        await insider.close()
    assert owner.execute("select count(*) from accounts.events").fetchone() == (3,)


async def test_sequencers_at_once_set_each_event_aside_once(service, owner, partner_id):
    """Whoever holds the head does; what is ours is numbered beside it."""
    accounts = service.accounts
    for _ in range(20):
        await forge(accounts, RawEvent(uuid4(), 1, "PartnerApproved", b"{}"))
    await service.partners.revoke(partner_id, STAFF)
    sequencers = [Sequencer(accounts) for _ in range(3)]
    # In one round each may find the head with another: that nobody numbered anything is no end.
    while owner.execute("select exists(select from accounts.pending)").fetchone()[0]:
        await asyncio.gather(*(one.step() for one in sequencers))
    assert owner.execute("select count(*) from accounts.set_aside").fetchone() == (20,)
    assert owner.execute("select size from accounts.head").fetchone() == (3,)


@pytest.mark.usefixtures("partner_id")
async def test_what_is_put_into_the_log_itself_is_never_signed(service, owner):
    """The role can still write `log` and `head`: then nothing more is signed or published."""
    accounts = service.accounts
    append_id = await forge(accounts, RawEvent(uuid4(), 1, "PartnerApproved", b"{}"))
    assert number_past_the_sequencer(owner, append_id) == 3
    checkpoints = Checkpoints(accounts, [KEY], None)
    with pytest.raises(LedgerForked, match="position 3 was not written by this service"):
        await checkpoints.make()
    assert owner.execute("select count(*) from accounts.checkpoints").fetchone() == (0,)
    roots = await service.secrets.known_events()
    verdict = await verify_ledger(
        accounts.database, Evidence([KEY]), event_keys=roots.of_ledger("accounts")
    )
    assert (verdict.ok, verdict.position) == (False, 3)
    assert "this service did not write it" in verdict.fault


async def test_nothing_is_replayed_from_a_forged_beginning(world, owner):
    """What a partner is told comes from an event of this service; meanwhile it is told to retry."""
    partner, entity_id = await world.connected()
    live = world.service.modes["live"].ledger
    (state,) = owner.execute("select state from live.events limit 1").fetchone()
    with_head = psycopg.connect(world.service.settings.database_url)
    with with_head as holder:
        holder.execute("select from live.head for update")
        stream = claim_stream("live", 0, partner.partner_id, entity_id, "case-1")
        await forge(live, RawEvent(stream, 1, "ClaimCreated", state))
        stream = onboarding_stream("live", 0, partner.partner_id, ONBOARDING["partner_user_id"])
        await forge(live, RawEvent(stream, 1, "OnboardingStarted", state))
        refused = (
            await partner.claim(entity_id),
            await partner.call("POST", "/onboardings", json=ONBOARDING),
        )
    await number(live)
    created = (
        await partner.claim(entity_id),
        await partner.call("POST", "/onboardings", json=ONBOARDING),
    )
    assert [one.status_code for one in refused + created] == [503, 503, 201, 201]


async def test_nothing_is_numbered_behind_an_event_that_has_no_number(service, owner, partner_id):
    """Genuine events that come back alone, or the other way round, leave no gap in their stream."""
    accounts, stream = service.accounts, partner_stream(partner_id)
    await service.partners.issue_key(partner_id, "live", STAFF)
    await service.partners.revoke(partner_id, STAFF)
    owner.execute("set role claim_ledger_accounts")
    owner.execute("select accounts.set_aside_events(array_agg(append_id)) from accounts.pending")
    owner.execute("reset role")
    kept = owner.execute(
        "select originator_id, originator_version, topic, state, mac from accounts.set_aside"
        " order by originator_version desc"
    ).fetchall()
    for *event, mac in kept:  # the later one first, and then the one before it
        await forge(accounts, RawEvent(*event), mac)
        await number(accounts)
    topics = owner.execute(
        "select e.topic from accounts.log as l join accounts.events as e using (append_id)"
        " where e.originator_id = %s order by l.position",
        [stream],
    ).fetchall()
    assert topics == [("PartnerApplied",), ("PartnerApproved",), ("ApiKeyIssued",)]
    roots = await service.secrets.known_events()
    verdict = await verify_ledger(
        accounts.database, Evidence([KEY]), event_keys=roots.of_ledger("accounts")
    )
    assert (verdict.ok, verdict.fault) == (True, None)


async def test_what_is_put_into_the_log_itself_has_no_effect(service, owner):
    """A forged message is neither queued for processing nor handed over; it is parked."""
    live, handed_over = service.modes["live"].ledger, []
    await service.secrets.get()
    message = FirstMessagePosted("clm_x", "msg_x", "ptn_x", "ent_x")
    stream = uuid4()
    meta = Meta(service.clock(), STAFF.actor, STAFF.request_id, live.name)
    state = live.codec.encode(stream, 1, message, meta, None).replace(b"null", b'"forged"')
    append_id = await forge(live, RawEvent(stream, 1, "FirstMessagePosted", state))
    owner.execute("set role claim_ledger_live")
    owner.execute("delete from live.pending")
    owner.execute("insert into live.log values (1, %s, sha256(''))", [append_id])
    queue = service.parked_by("live", HandOverQueue.name)
    subscription = Subscription(live, queue)
    while await subscription.step():
        pass
    queued = owner.execute("select count(*) from live.hand_overs").fetchone()
    # Not just now: the service's clock has milliseconds.
    due = "insert into live.hand_overs values (1, %s, %s, 0, %s)"
    owner.execute(due, [stream, *[datetime.now(UTC) - timedelta(seconds=1)] * 2])
    owner.execute("reset role")

    class Recording:
        async def hand_over(self, message):
            handed_over.append(message)

    await QueueRunner(HandOvers(live, queue, Recording()), service.clock).step()
    parked = owner.execute("select read_model, error from live.parked").fetchall()
    assert (queued, handed_over) == ((0,), [])
    assert parked == [("processing", "this service did not write it")]


async def test_an_event_of_any_size_is_refused(service, owner):
    """Nobody makes the sequencer hash a gigabyte, nor a process read it."""
    event = RawEvent(uuid4(), 1, "PartnerApproved", b"")
    for forged, mac in (
        (event._replace(state=bytes(16 * 1024 * 1024 + 1)), b""),
        (event._replace(topic="x" * 201), b""),
        (event, bytes(65)),
    ):
        with pytest.raises(CheckViolationError):
            await forge(service.accounts, forged, mac)
    assert owner.execute("select count(*) from accounts.events").fetchone() == (0,)


async def test_a_key_that_somebody_added_is_no_reason_to_check_no_macs(service, owner):
    """The service's own keys open; one that does not is a fault, and not the lack of any."""
    await service.secrets.get()
    owner.execute("set role claim_ledger_accounts")
    owner.execute("insert into accounts.event_keys values (2, true, 'garbage', 'nobody')")
    with pytest.raises(KeyUnknown, match="event key 2: no master key nobody in the ring"):
        await service.secrets.known_events()
