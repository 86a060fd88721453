"""An event of somebody whose time has ended is judged by what was appended before it."""

from functools import partial

import msgspec
import pytest

from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.set_aside import newest_set_aside, take_back
from service.evidence.verify import actors as actors_module
from service.evidence.verify import slices as slices_module
from service.evidence.verify.actors import BEFORE_MAX
from service.evidence.verify.expectations import Evidence
from service.evidence.verify.known_actors import Accounts
from service.evidence.verify.ledger_verifier import verify
from service.facts.claims import ClaimStageChanged
from service.ledger.events import Cause
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from tests.evidence.checkpointing import KEY
from tests.evidence.watched import WAITS, by_parts
from tests.ledger.raw_events import number_past_the_sequencer
from tests.numbering import number

CAUSE = Cause("system:installation", "r")
HELD = "delete from live.pending returning append_id"
PUT_BACK = "insert into live.pending (append_id) values (%s)"
ASIDE = "select live.set_aside_events(array_agg(append_id)) from live.pending"
AGAIN = queries("service.evidence").take_back.on("live").replace("$1", "1")


@pytest.fixture(autouse=True)
def long_slices(monkeypatch):
    """Read the log in few slices."""
    monkeypatch.setattr(slices_module, "EVENTS_MAX", 20)


@pytest.fixture
async def leaver(watched):
    """Return a member of staff who has done something that waits for its number."""
    staff_id = await watched.staff.add("u@example.com", CAUSE)
    await Sequencer(watched.accounts).number_committed()
    await watched.append(f"staff:{staff_id}")
    return f"staff:{staff_id}"


async def leave(watched):
    """End that person's access, a day before others do more than is looked back at."""
    await watched.staff.remove("u@example.com", CAUSE)
    await Sequencer(watched.accounts).number_committed()
    watched.days += 1
    for _ in range(BEFORE_MAX + 1):
        await watched.append("system:sandbox")
    await number(watched.live)


async def faults(watched, parts=None, *, with_keys=True):
    """Return how many faults of actors a verification finds."""
    live, accounts = watched.live, watched.accounts
    known = Accounts(accounts.database, await accounts.event_keys() if with_keys else None)
    tried = []
    async with live.database.background.transaction(60) as connection:
        found = await verify(
            connection,
            "live",
            Evidence([KEY]),
            accounts=known,
            event_keys=await live.event_keys() if with_keys else None,
            confirm=parts and partial(by_parts, tried, parts),
        )
    assert found.fault is None
    assert tried == ([] if parts is None else [True])
    return found.actor_faults


async def without_the_keys(watched):
    """Return the faults that parts and the walk find that trust only what is signed."""
    await Checkpoints(watched.accounts, [KEY], None).make()
    return [await faults(watched, parts, with_keys=False) for parts in (None, 1, 3)]


def forge(owner):
    """Have events of a later year wait, more than there are others; return their append_ids."""
    meta = {"at": "2030-01-01T00:00:00.000000Z", "actor": "system:documents"}
    state = msgspec.json.encode({"class_version": 1, "meta": meta, "data": {}})
    columns = (None, "DocumentFlagged", state, b"\1" + bytes(32))
    return [owner.execute(WAITS.format("live"), columns).fetchone()[0] for _ in range(BEFORE_MAX)]


async def each_way(watched):
    """Return the faults that parts, the walk, and the worker's pass find."""
    by_way = [await faults(watched, parts) for parts in (None, 1, 3)]
    return [*by_way, (await watched.verify())[1].faults]


@pytest.mark.usefixtures("leaver")
async def test_what_is_numbered_late_accuses_nobody(watched, owner):
    """Somebody with the login held it back: it was appended before its actor's time ended."""
    ((append_id,),) = owner.execute(HELD).fetchall()
    await leave(watched)
    owner.execute(PUT_BACK, (append_id,))
    await number(watched.live)
    assert await each_way(watched) == [0] * 4


@pytest.mark.usefixtures("leaver")
async def test_what_is_taken_back_accuses_nobody(watched, owner):
    """It is appended again, long after its actor's time ended."""
    owner.execute(ASIDE)
    await leave(watched)
    (hidden,) = await newest_set_aside(watched.live)
    await take_back(watched.live, hidden.set_aside_id, "hidden", Cause(CAUSE.actor, "r"))
    assert await each_way(watched) == [0] * 4


@pytest.mark.usefixtures("leaver")
@pytest.mark.parametrize("times", [1, 2])
async def test_what_is_written_again_accuses_nobody(watched, owner, times):
    """The login writes it as it was set aside, however often, and nothing records that."""
    owner.execute(ASIDE)
    await leave(watched)
    for _ in range(times - 1):
        owner.execute(AGAIN)
        owner.execute(ASIDE)
    owner.execute(AGAIN)
    await number(watched.live)
    assert await each_way(watched) == [0] * 4


@pytest.mark.usefixtures("leaver")
async def test_another_event_in_place_of_what_was_set_aside_is_a_finding(watched, leaver, owner):
    """Of the same stream and version, and appended later."""
    owner.execute(ASIDE)
    ((stream,),) = owner.execute("select originator_id from live.set_aside").fetchall()
    await leave(watched)
    watched.days -= 1
    await watched.act(leaver, ClaimStageChanged("clm_2", "settled"), stream)
    watched.days += 1
    assert await each_way(watched) == [1] * 4


async def test_what_is_appended_late_is_a_finding(watched, leaver, owner):
    """Whoever dates it back; that another event was taken back clears none."""
    owner.execute(ASIDE)
    await leave(watched)
    (hidden,) = await newest_set_aside(watched.live)
    watched.days -= 1
    await watched.act(leaver)
    watched.days += 1
    await take_back(watched.live, hidden.set_aside_id, "hidden", Cause(CAUSE.actor, "r"))
    assert await each_way(watched) == [1] * 4


async def test_without_the_keys_what_is_not_signed_makes_nothing_late(watched, leaver, owner):
    """Whoever has the login numbers forged events before a genuine one."""
    await number(watched.live)
    forged = forge(owner)
    await watched.append(leaver)
    ((genuine,),) = owner.execute("select max(append_id) from live.pending").fetchall()
    for append_id in (*forged, genuine):
        number_past_the_sequencer(owner, append_id, "live")
    await watched.staff.remove("u@example.com", CAUSE)
    await Sequencer(watched.accounts).number_committed()
    assert await without_the_keys(watched) == [0] * 3


async def test_without_the_keys_nothing_that_is_signed_is_late_by_what_is_not(
    watched, leaver, owner
):
    """Nor by forged events that were appended before it, and numbered after the checkpoint."""
    await number(watched.live)
    forged = forge(owner)
    await watched.append(leaver)
    ((genuine,),) = owner.execute("select max(append_id) from live.pending").fetchall()
    owner.execute(HELD)
    await leave(watched)
    owner.execute(PUT_BACK, (genuine,))
    await number(watched.live)
    await Checkpoints(watched.live, [KEY], None).make()
    for append_id in forged:
        number_past_the_sequencer(owner, append_id, "live")
    assert await without_the_keys(watched) == [0] * 3


async def test_without_the_keys_what_is_late_is_a_finding_once_it_is_signed(watched, leaver):
    """Before that, it may be anybody's."""
    await leave(watched)
    watched.days -= 1
    await watched.act(leaver)
    assert await without_the_keys(watched) == [0] * 3
    await Checkpoints(watched.live, [KEY], None).make()
    assert await without_the_keys(watched) == [1] * 3


async def test_more_than_are_looked_at_again_are_findings(watched, leaver, monkeypatch):
    """Of a flood of them, each counts, as it seems."""
    monkeypatch.setattr(actors_module, "LATE_MAX", 1)
    await leave(watched)
    watched.days -= 1
    for _ in range(3):
        await watched.append(leaver)
    await number(watched.live)
    watched.days += 1
    assert await each_way(watched) == [3] * 4
