"""Whoever has a ledger's login can have events wait, and says nothing of who could act by that."""

import msgspec
import pytest

from service.evidence.checkpoint import NOTE_BYTES_MAX, Checkpoint
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.log_findings import NOTHING_FOUND
from service.evidence.note import NoteKey
from service.evidence.verify import people as people_module
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.known_actors import STATE_BYTES_MAX, Accounts
from service.evidence.verify.ledger_verifier import verify_ledger
from service.evidence.verify.slices import Slices
from service.facts.entities import entity_stream
from service.ledger import decoding
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from tests.evidence.checkpointing import KEY
from tests.evidence.watched import DAY, WAITS
from tests.ledger.raw_events import number_past_the_sequencer

GONE = """
delete from accounts.events
where topic = 'StaffAdded' and append_id in (select append_id from accounts.pending)
"""

STORED = """
insert into accounts.checkpoints (origin, size, note, made_at) values (%s, %s, %s, now())
"""


@pytest.fixture(autouse=True)
async def signed(watched):
    """Have nothing else wait in the ledger of accounts, and a checkpoint cover what there is."""
    await Sequencer(watched.accounts).number_committed()
    await Checkpoints(watched.accounts, [KEY], None).make()


@pytest.fixture
def wait(owner):
    """Return a function by which somebody without the keys has an event wait for its number.

    It returns the event's append_id.
    """

    def put(topic, *, ledger="accounts", stream=None, mac=None, **data):
        meta = {"at": "2020-01-01T00:00:00Z", "actor": "system:dev", "request_id": "r"}
        state = {"class_version": 1, "meta": meta | {"mode": ledger}, "data": data}
        columns = (stream, topic, msgspec.json.encode(state), mac)
        return owner.execute(WAITS.format(ledger), columns).fetchone()[0]

    return put


@pytest.fixture
def pages(watched, monkeypatch):
    """Return the bytes of each event that was fetched at a time, which grows as they are."""
    fetched, ours = list[list[int]](), watched.accounts.ours

    async def seen(rows):
        fetched.append([len(row["state"]) for row in rows])
        return await ours(rows)

    monkeypatch.setattr(watched.accounts, "ours", seen)
    return fetched


async def verdict(watched, *, with_keys=True):
    """Verify the ledger of claims, with or without the master keys."""
    live, accounts = watched.live, watched.accounts
    keys = await live.event_keys() if with_keys else None
    known = Accounts(accounts.database, await accounts.event_keys() if with_keys else None)
    return await verify_ledger(live.database, Evidence([KEY]), accounts=known, event_keys=keys)


async def test_they_clear_nobody(watched, wait):
    """Neither the worker's finding, nor that of a verification with the keys."""
    await watched.act("staff:stf_x")
    assert (await watched.verify())[1].faults == 1
    for mac in (None, b"\x01" + bytes(32)):
        wait("StaffAdded", staff_id="stf_x", mac=mac)
        assert (await watched.verify())[1].faults == 1
    found = await verdict(watched)
    assert (found.ok, found.actor_faults, found.unproven_actors) == (True, 1, 0)


async def test_they_accuse_nobody(watched, wait):
    """Nobody's access has ended, with the keys or without them."""
    wait("StaffRemoved", staff_id=watched.staff_id)
    assert (await watched.verify())[1] == NOTHING_FOUND
    for with_keys in (True, False):
        found = await verdict(watched, with_keys=with_keys)
        assert (found.ok, found.actor_faults, found.unproven_actors) == (True, 0, 0)


async def test_without_the_keys_a_verdict_says_whom_they_made_known(watched, wait):
    """A genuine event may wait, too, and nobody is accused for that."""
    await watched.act("staff:stf_x")
    await watched.act("customer:ent_2")
    assert (await verdict(watched, with_keys=False)).actor_faults == 2
    wait("StaffAdded", staff_id="stf_x")
    found = await verdict(watched, with_keys=False)
    assert (found.actor_faults, found.unproven_actors) == (1, 1)
    wait("Anything", ledger="live", stream=entity_stream("live", "ent_2"))
    found = await verdict(watched, with_keys=False)
    assert (found.actor_faults, found.unproven_actors) == (0, 2)


async def test_without_the_keys_what_no_checkpoint_covers_counts_as_what_waits(
    watched, wait, owner
):
    """The login numbers, too: nobody's access ends by that, and the verdict has the number."""
    number_past_the_sequencer(owner, wait("StaffRemoved", staff_id=watched.staff_id))
    await watched.act("staff:stf_x")
    found = await verdict(watched, with_keys=False)
    assert (found.ok, found.actor_faults, found.unproven_actors) == (True, 1, 0)
    number_past_the_sequencer(owner, wait("StaffAdded", staff_id="stf_x"))
    found = await verdict(watched, with_keys=False)
    assert (found.ok, found.actor_faults, found.unproven_actors) == (True, 0, 1)
    found = await verdict(watched)
    assert (found.ok, found.actor_faults, found.unproven_actors) == (True, 1, 0)


async def test_only_a_checkpoint_that_is_signed_and_binds_the_log_proves_an_event(
    watched, wait, owner
):
    """Whoever has the login stores others: of nobody's key, of another size, of no lineage."""
    number_past_the_sequencer(owner, wait("StaffAdded", staff_id="stf_x"))
    ((origin, note),) = owner.execute("select origin, note from accounts.checkpoints").fetchall()
    stranger = NoteKey.of_seed(KEY.name, bytes([1] * 32))
    root = bytes(32)
    stored = (
        (origin, 100, Checkpoint(origin, 100, root).sign(stranger)),
        (origin, 101, note),
        (f"{origin}x", 102, Checkpoint(f"{origin}x", 102, root).sign(KEY)),
        *((origin, size, "x" * NOTE_BYTES_MAX) for size in range(200, 210)),
    )
    for one in stored:
        owner.execute(STORED, one)
    assert (await verdict(watched, with_keys=False)).unproven_actors == 1


async def test_they_register_no_entity(watched, wait):
    """The first event of its stream counts where this service wrote it."""
    await watched.act("customer:ent_2")
    assert (await watched.verify())[1].faults == 1
    wait("EntityRegistered", ledger="live", stream=entity_stream("live", "ent_2"))
    assert (await watched.verify())[1].faults == 1


async def test_what_waits_counts_as_long_as_it_is_there(watched, owner):
    """A genuine event that waits says who could act, and nothing once it is gone."""
    staff_id = await watched.staff.add("u@example.com", Cause("system:installation", "r"))
    await watched.act(f"staff:{staff_id}")
    assert (await watched.verify())[1] == NOTHING_FOUND
    watched.days += 1
    slices = Slices(watched.live, [KEY], DAY, watched.people)
    await slices.slice()
    assert staff_id in watched.people.known.staff
    owner.execute("alter table accounts.events disable trigger user")
    owner.execute(GONE)
    while await slices.slice():
        pass
    assert (await watched.noted()).faults == 1


async def test_what_is_numbered_meanwhile_is_known_once(watched, service):
    """What waited is then read with its number, and nobody who was removed comes back."""
    cause = Cause("system:installation", "r")
    staff_id = await watched.staff.add("u@example.com", cause)
    await watched.staff.remove("u@example.com", cause)
    assert await watched.people.catch_up(0)
    waited = watched.people.known.staff[staff_id]
    await Sequencer(service.accounts).number_committed()
    assert await watched.people.catch_up(0)
    assert watched.people.known.staff[staff_id] == waited


async def test_what_others_have_wait_takes_little_memory(watched, wait, monkeypatch, pages):
    """It is read in pages, and what is longer than the service writes not at all."""
    monkeypatch.setattr(people_module, "WAITING_STEP", 2)
    for _ in range(3):
        wait("StaffAdded", staff_id="stf_x")
    wait("StaffAdded", staff_id="x" * STATE_BYTES_MAX)
    staff_id = await watched.staff.add("u@example.com", Cause("system:installation", "r"))
    wait("StaffAdded", staff_id="stf_x")
    assert await watched.people.catch_up(0)
    assert [len(page) for page in pages[:-1]] == [2, 2, 1]
    assert max(map(max, pages)) <= STATE_BYTES_MAX
    assert (staff_id in watched.people.known.staff, "stf_x" in watched.people.known.staff) == (
        True,
        False,
    )


async def test_what_others_number_takes_little_memory(watched, wait, owner, monkeypatch, pages):
    """So it is with that: its pages end by their bytes, too, and nothing is passed over."""
    for _ in range(3):
        number_past_the_sequencer(owner, wait("StaffAdded", staff_id="x" * STATE_BYTES_MAX))
    large = "x" * (STATE_BYTES_MAX // 2)
    last = [number_past_the_sequencer(owner, wait("StaffAdded", staff_id=large)) for _ in "1234"]
    for module in (people_module, decoding):
        monkeypatch.setattr(module, "PAGE_BYTES_MAX", STATE_BYTES_MAX)
    while not await watched.people.catch_up(0):
        pass
    numbered = [page for page in pages if page]
    assert max(map(sum, numbered)) <= 2 * STATE_BYTES_MAX
    assert sum(map(len, numbered)) == 1 + len(last)
    assert set(watched.people.known.staff) == {watched.staff_id}
    found = await verdict(watched, with_keys=False)
    assert (found.ok, found.unproven_actors) == (True, len(last))


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_a_time_at_either_end_of_all_of_them_hides_no_verdict(watched, owner, at):
    """Neither where it waits, nor in an event that was altered: that is what is found."""
    accounts = watched.accounts.database
    says = f'{{"class_version":1,"meta":{{"at":"{at}","actor":"a"}},"data":{{"staff_id":"stf_x"}}}}'
    owner.execute(WAITS.format("accounts"), (None, "StaffAdded", says.encode(), None))
    for with_keys in (True, False):
        assert (await verdict(watched, with_keys=with_keys)).ok
    owner.execute("alter table accounts.events disable trigger user")
    owner.execute(
        """
        update accounts.events set state = convert_to(regexp_replace(
            convert_from(state, 'utf8'), '"at":"[^"]*"', '"at":"' || %s || '"'
        ), 'utf8')
        where topic = 'StaffAdded' and append_id in (select append_id from accounts.log)
        """,
        (at,),
    )
    found = await verify_ledger(accounts, Evidence([KEY]), accounts=Accounts(accounts))
    assert found.fault == "The event at position 1 is not the one that was hashed there."
