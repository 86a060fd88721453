"""Who the events of a log are said to be of: keys and people that existed, and could act then."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from uuid import UUID

import msgspec
import pytest

from service.core.ids import derived_id
from service.evidence.verify.actor_faults import ActorFaults
from service.evidence.verify.actors import BEFORE_MAX, BEFORE_MIN, ENTITIES_LATE_MAX, Actors
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.known_actors import Accounts, KnownActors
from service.evidence.verify.ledger_verifier import verify_ledger
from service.evidence.verify.rows import LogRow
from service.evidence.verify.streams import Streams
from service.facts.claims import ClaimStageChanged
from service.facts.entities import EntityRegistered, entity_stream
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRebound,
    ApiKeyRevoked,
    MemberAdded,
    MemberRemoved,
    PartnerRevoked,
)
from service.facts.people import StaffAdded, StaffRemoved
from service.ledger.codec import Codec
from service.ledger.events import Cause, Meta
from service.ledger.writing import Append
from tests.numbering import number
from tests.tables import every_row

T0 = datetime(2026, 3, 1, tzinfo=UTC)
STREAM = UUID(int=1)


def at(minutes):
    """Return a moment."""
    return T0 + timedelta(minutes=minutes)


def state(event, minutes, actor, ledger="live"):
    """Return an event as it is stored."""
    meta = Meta(at(minutes), actor, "req_1", ledger)
    return Codec(ledger, {}).encode(STREAM, 1, event, meta, None)


def key(name, partner="ptn_1", mode="live"):
    """Return the fact that a key was issued."""
    return ApiKeyIssued(partner, f"key_{name}", mode, b"hash")


def member(name, person=None, partner="ptn_1"):
    """Return the fact that a person joined a team."""
    return MemberAdded(partner, f"mem_{name}", None, None, person)


ACCOUNTS = [
    (0, key("1")),
    (0, key("test", mode="test")),
    (0, key("ended")),
    (0, key("rolled")),
    (0, key("of_a_revoked_partner", "ptn_2")),
    (100, ApiKeyRevoked("ptn_1", "key_ended")),
    (100, ApiKeyRevoked("ptn_1", "key_rolled", at(200))),
    (150, PartnerRevoked("ptn_2")),
    (0, StaffAdded("stf_1")),
    (0, StaffAdded("stf_gone")),
    (100, StaffRemoved("stf_gone")),
    (0, member("1", "per_1")),
    (0, member("gone", "per_gone")),
    (100, MemberRemoved("ptn_1", "mem_gone")),
    (0, member("twice", "per_twice")),
    (100, MemberRemoved("ptn_1", "mem_twice")),
    (300, member("again", "per_twice", "ptn_2")),
]


def known(facts=ACCOUNTS):
    """Return who could act, by these facts."""
    one = KnownActors()
    for minutes, event in facts:
        one.take(type(event).__name__, state(event, minutes, "system:dev", "accounts"))
    return one


def actors(facts=ACCOUNTS, streams=None, ledger="live"):
    """Return the check of a log."""
    return Actors(ledger, known(facts), streams or Streams())


def rows(*events):
    """Return the rows of a log with events of these (minutes, actor)."""
    moved = ClaimStageChanged("clm_1", "settled")
    return [
        LogRow(position, position, b"", position, STREAM, position, "x", state(moved, *event))
        for position, event in enumerate(events, 1)
    ]


def told(check):
    """Return the first fault of a log that was read, where those that are late count."""
    faults = check.faults()
    late = [ActorFaults(one.fault, 1) for one in faults.late]
    return reduce(ActorFaults.joined, late, faults).told


def fault_of(*events, **more):
    """Return the sentence about a log, None where nothing is wrong."""
    check = actors(**more)
    for row in rows(*events):
        check.take(row)
    fault = told(check)
    return None if fault is None else fault.sentence


ALLOWED = [
    (50, "partner:ptn_1/key_1"),
    (0, "partner:ptn_1/key_1"),
    (-4, "partner:ptn_1/key_1"),  # another machine's clock
    (99, "partner:ptn_1/key_ended"),
    (104, "partner:ptn_1/key_ended"),  # admitted before its end
    (199, "partner:ptn_1/key_rolled"),
    (149, "partner:ptn_2/key_of_a_revoked_partner"),
    (50, "staff:stf_1"),
    (99, "staff:stf_gone"),
    (50, "member:per_1"),
    (99, "member:per_gone"),
    (50, "member:per_twice"),
    (400, "member:per_twice"),
    (50, "customer:per_anybody"),
    (50, "system:sandbox"),
    (50, "system:documents"),
]
FORGED = [
    (50, "partner:ptn_1/key_unknown", "no such key was issued"),
    (50, "partner:ptn_1", "no such key was issued"),
    (50, "partner:ptn_2/key_1", "the key was issued to ptn_1 for live"),
    (50, "partner:ptn_1/key_test", "the key was issued to ptn_1 for test"),
    (-6, "partner:ptn_1/key_1", "it was not there yet at 2026-02-28T23:54:00Z"),
    (106, "partner:ptn_1/key_ended", "it ended at 2026-03-01T01:40:00Z"),
    (206, "partner:ptn_1/key_rolled", "it ended at 2026-03-01T03:20:00Z"),
    (156, "partner:ptn_2/key_of_a_revoked_partner", "it ended at 2026-03-01T02:30:00Z"),
    (50, "staff:stf_unknown", "nobody of that id was ever staff"),
    (106, "staff:stf_gone", "it ended at 2026-03-01T01:40:00Z"),
    (50, "member:per_unknown", "nobody of that id was ever a member"),
    (106, "member:per_gone", "it ended at 2026-03-01T01:40:00Z"),
    (200, "member:per_twice", "it ended at 2026-03-01T01:40:00Z"),
    (50, "customer:ent_unknown", "no such entity was registered"),
    (50, "system:anything", "that is nobody who could act"),
    (50, "root", "that is nobody who could act"),
    (50, "", "that is nobody who could act"),
    (50, "\x1b[31m" + "x" * 1000, "that is nobody who could act"),
]


def test_whoever_existed_then_may_be_named():
    """A few minutes on either side are another machine's clock, or a request under way."""
    with every_row() as row:
        for one in ALLOWED:
            with row(*one):
                assert fault_of(one) is None


def test_whoever_did_not_exist_or_had_ended_is_a_finding():
    """The first one's position is named, with the reason; the text is fit for a terminal."""
    with every_row() as row:
        for minutes, actor, why in FORGED:
            with row(actor[:40], minutes):
                said = fault_of((50, "system:dev"), (minutes, actor))
                assert said is not None
                assert said.startswith("The event at position 2 is not of ")
                assert said.endswith(f": {why}.")
                assert said.isprintable()
                assert len(said) < 300


def test_a_former_actor_is_one_of_events_without_a_mac():
    """Releases that recorded it made none; whoever names it today forges."""
    (old,) = rows((50, "staff:cli"))
    check = actors()
    check.take(old)
    assert told(check) is None
    check.take(old._replace(mac=b"mac"))
    fault = told(check)
    assert fault is not None
    assert "staff:cli: nobody of that id was ever staff" in fault.sentence


def test_keys_do_not_act_in_the_ledger_of_accounts():
    """They are of a mode."""
    said = fault_of((50, "partner:ptn_1/key_1"), ledger="accounts")
    assert said is not None
    assert "issued to ptn_1 for live" in said


def test_keys_of_both_modes_bind_their_own_hashes_in_the_ledger_of_accounts():
    """Those of an earlier release do, when they are used; no other key's, and nothing else."""
    cases = [
        ("key_1", "key_1", None),
        ("key_test", "key_test", None),
        ("key_1", "key_test", "the key was issued to ptn_1 for live"),
        ("key_unknown", "key_unknown", "no such key was issued"),
    ]
    with every_row() as row:
        for by, bound, why in cases:
            with row(by, bound):
                actor = f"partner:ptn_1/{by}"
                rebound = state(ApiKeyRebound("ptn_1", bound, b"hash", 2), 50, actor, "accounts")
                check = actors(ledger="accounts")
                check.take(rows((50, actor))[0]._replace(topic="ApiKeyRebound", state=rebound))
                fault = told(check)
                assert (fault and fault.sentence.rpartition(": ")[2]) == (why and f"{why}.")
    check = actors(ledger="accounts")
    rebinding, another = rows((50, "partner:ptn_1/key_1"), (50, "partner:ptn_1/key_1"))
    mine = state(ApiKeyRebound("ptn_1", "key_1", b"hash", 2), 50, "partner:ptn_1/key_1", "accounts")
    check.take(rebinding._replace(topic="ApiKeyRebound", state=mine))
    assert told(check) is None
    assert check.open_since == {}  # whoever reads in parts would look at none of its events again
    check.take(another)
    assert told(check) is not None


def test_further_findings_are_counted():
    """One sentence for a log with many, and memory for one."""
    said = fault_of(*[(50, f"staff:stf_{number}") for number in range(2, 1002)])
    assert said is not None
    assert said.startswith("The event at position 1 is not of staff:stf_2: ")
    assert said.endswith(" So it is with 999 other events.")


def test_dating_an_event_back_gains_nothing():
    """Behind events of a later time, an ended key is ended whatever the event says."""
    late = [(400, "system:dev")] * BEFORE_MAX
    said = fault_of(*late, (50, "partner:ptn_1/key_ended"))
    assert said is not None
    assert said.endswith("it ended at 2026-03-01T01:40:00Z.")
    assert fault_of(*late, (50, "partner:ptn_1/key_1")) is None
    assert fault_of(*late, (50, "member:per_twice")) is None  # who can act again gains nothing


def test_dating_an_event_back_gains_nothing_in_a_short_log():
    """Of fewer events, those that there are count; one may be of a wrong clock."""
    ended = (50, "partner:ptn_1/key_ended")
    for before in range(BEFORE_MIN, BEFORE_MAX):
        said = fault_of(*[(400, "system:dev")] * before, ended)
        assert said is not None
        assert said.endswith("it ended at 2026-03-01T01:40:00Z.")
    assert fault_of((400, "system:dev"), ended) is None
    assert fault_of((400, "system:dev"), (50, "system:dev"), ended) is None


def test_one_wrong_clock_disturbs_nothing():
    """A few events of the future do not make what follows them late."""
    few = [(99_999, "system:dev")] * (BEFORE_MAX // 2)
    before = [(50, "system:dev")] * BEFORE_MAX
    assert fault_of(*before, *few, (60, "partner:ptn_1/key_ended")) is None


def test_an_entity_that_acts_is_registered_in_the_same_ledger():
    """Before it acts, or by the same transaction, which numbers it a little later."""
    streams = Streams()
    check = actors(streams=streams)
    acted, *others = rows((50, "customer:ent_1"), *[(50, "system:dev")] * 10)
    check.take(acted)
    for row in others:
        check.take(row)
    streams.take(entity_stream("live", "ent_1"), 1, 1)
    assert told(check) is None


def test_an_entity_that_is_registered_long_after_it_acted_is_a_finding():
    """What is waited for is bounded, and the first position is named."""
    streams = Streams()
    check = actors(streams=streams)
    for row in rows(*[(50, "customer:ent_1")] * (ENTITIES_LATE_MAX + 2)):
        check.take(row)
    streams.take(entity_stream("live", "ent_1"), 1, 1)
    fault = told(check)
    assert fault is not None
    assert fault.position == 1
    assert fault.sentence.endswith("So it is with another event.")


def test_members_of_earlier_releases_are_not_told_apart():
    """Their events do not say which person they are: anybody may be one, while there were any."""
    facts = [(0, member("old")), (100, MemberRemoved("ptn_1", "mem_old"))]
    assert fault_of((50, "member:per_x"), facts=facts) is None
    assert fault_of((106, "member:per_x"), facts=facts) is not None


def test_damaged_events_of_accounts_say_nothing():
    """Whoever verifies that ledger is told; here they make nobody known."""
    one = KnownActors()
    for topic in ("ApiKeyIssued", "ApiKeyRevoked", "MemberRemoved", "StaffRemoved", "Unknown"):
        for raw in (b"", b"{", b"[]", b'{"meta": {"at": "x"}, "data": {}}'):
            one.take(topic, raw)
    assert (one.staff, one.members, one.unnamed) == ({}, {}, {})


def test_an_event_of_accounts_may_have_any_time():
    """Whoever has the login writes it: the first and the last years are as good as others."""
    with every_row() as row:
        for at, is_there in (
            ("0001-01-01T00:00:00Z", True),
            ("0001-01-01T00:00:00+05:00", True),
            ("9999-12-31T23:59:59Z", False),
            ("9999-12-31T23:59:59-05:00", False),
        ):
            with row(at):
                one = KnownActors()
                meta = {"at": at, "actor": "system:dev"}
                for topic, staff_id in (
                    ("StaffAdded", "stf_x"),
                    ("StaffAdded", "stf_y"),
                    ("StaffRemoved", "stf_y"),
                ):
                    fact = {"meta": meta, "data": {"staff_id": staff_id}}
                    one.take(topic, msgspec.json.encode(fact))
                check = Actors("live", one, Streams())
                for acted in rows((50, "staff:stf_x")):
                    check.take(acted)
                assert (told(check) is None) == is_there
                assert one.staff["stf_y"].ended_at == at


def test_json_that_is_too_deep_is_no_event():
    """Neither one that says who could act, nor one that somebody did."""
    deep = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    one = KnownActors()
    one.take("StaffAdded", deep)
    assert one.staff == {}
    (row,) = rows((50, "staff:stf_x"))
    check = actors()
    check.take(row._replace(state=deep))
    assert told(check) is None


@pytest.mark.server
async def test_a_forged_actor_is_found_in_a_real_ledger(service):
    """Sound hashes and a sound place in its stream do not make an event true."""
    partner_id = await service.partners.add("P", "p@example.com", Cause("system:dev", "r"))
    live, entity = service.modes["live"].ledger, entity_stream("live", "ent_1")
    staff_id = await service.staff.add("t@example.com", Cause("system:installation", "r"))

    async def append(stream, event, actor, *public_ids):
        one = Append(stream, 0, [event], Cause(actor, "req_1"), public_ids=public_ids)
        async with live.transaction() as transaction:
            await transaction.append(one)
        await number(live)

    async def verdict(ledger):
        return await verify_ledger(
            service.ledger(ledger).database,
            Evidence(()),
            accounts=Accounts(service.accounts.database),
        )

    registered = EntityRegistered("ent_1", established=True)
    await append(entity, registered, f"staff:{staff_id}", "ent_1")
    await append(UUID(int=2), ClaimStageChanged("clm_1", "settled"), "customer:ent_1")
    assert ((await verdict("live")).fault, (await verdict("accounts")).fault) == (None, None)
    forged = f"partner:{partner_id}/{derived_id('key', 'x')}"
    await append(UUID(int=3), ClaimStageChanged("clm_2", "settled"), forged)
    found = await verdict("live")
    assert (found.ok, found.position, found.actor_faults) == (True, None, 1)
    told = f"The event at position 3 is not of {forged}: no such key was issued."
    assert found.actors_fault == told


def test_actors_are_read_from_the_form_that_events_have():
    """A changed codec would otherwise pass for a log in which nobody acts."""
    raw = msgspec.json.decode(state(ClaimStageChanged("clm_1", "x"), 0, "staff:stf_1"))
    assert raw["meta"]["actor"] == "staff:stf_1"
    assert raw["meta"]["at"] == "2026-03-01T00:00:00Z"
