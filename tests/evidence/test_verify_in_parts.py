"""Verifying a log in parts, by several processes: each row once, and nothing left behind."""

import asyncio
import os
import signal
import tempfile

import pytest

from service.core.forked_processes import Spare, Spares
from service.evidence.verify import confirm, ledger_verifier, part, segments
from service.evidence.verify.actor_faults import ActorFaults
from service.evidence.verify.confirm import macs_hold
from service.evidence.verify.ledger_verifier import verify_ledger
from service.evidence.verify.part import PartOutcome
from service.evidence.verify.part_macs import NO_KEY, PartMacs
from service.evidence.verify.part_process import PartFailed, check_in
from service.evidence.verify.segments import JoinedStreams
from service.ledger.database import Database
from service.ledger.event_macs import MAC_BYTES, UNBOUND, EventKeys
from tests.evidence.sealed_log import SIZE, disarm
from tests.faults.clusters import folder_for_all
from tests.patience import PATIENCE_SECONDS, eventually
from tests.pgbouncer import logins, pooler


@pytest.fixture
def spares(monkeypatch):
    """Return two processes that may read parts, of which there are some for this small log."""
    monkeypatch.setattr(confirm, "PART_EVENTS_MIN", SIZE // 3)
    with Spares(2) as forked:
        yield forked


@pytest.fixture
def asked(monkeypatch):
    """Return the processes that were asked to read a part, and how that went."""
    seen = []

    async def watched(spare, *arguments):
        seen.append(one := [spare, None])
        try:
            found = await check_in(spare, *arguments)
        except PartFailed:
            one[1] = "failed"
            raise
        one[1] = "read"
        return found

    monkeypatch.setattr(confirm, "check_in", watched)
    return seen


@pytest.fixture
def few_at_once(monkeypatch):
    """Have a part keep few streams, and read few rows at a time."""
    monkeypatch.setattr(part, "STREAMS_MAX", 3)
    monkeypatch.setattr(part, "STEP", 5)


@pytest.fixture
def folder():
    """Return a directory readable by nobody's user: PgBouncer refuses to run as root."""
    with folder_for_all() as path:
        yield path


async def test_processes_of_their_own_read_a_part_each(log, accounts, spares, asked):
    """They see the snapshot of the one that asks; what they confirm is not walked through again.

    A second verification is by the same ones.
    """
    for _ in range(2):
        asked.clear()
        read = []
        verdict = await verify(accounts.database, log, read.append, spares=spares)
        assert (verdict.fault, verdict.size, verdict.checkpoints) == (None, SIZE, 3)
        assert (outcomes(asked), sum(read), min(read) < 0) == (["read"] * 2, SIZE, False)
        assert len(spares) == 2


@pytest.mark.usefixtures("few_at_once")
async def test_a_part_keeps_a_bounded_number_of_streams(log, accounts, monkeypatch):
    """Those that it puts away are joined at the end: nothing is walked through again."""
    turns = []
    put = JoinedStreams.put

    def seen(self, number, sent):
        turns.append(sent.turn)
        put(self, number, sent)

    monkeypatch.setattr(JoinedStreams, "put", seen)
    monkeypatch.setattr(ledger_verifier, "_walked", None)  # nothing is to be walked through
    read = []
    verdict = await verify_ledger(accounts.database, log.published, read.append)
    assert (verdict.fault, verdict.size, sum(read)) == (None, SIZE, SIZE)
    assert max(turns) > 1


@pytest.mark.parametrize("step", [2, 3])
async def test_events_that_were_committed_late_are_read_with_their_step(
    log, accounts, monkeypatch, step
):
    """Whether the ids of a step grow or not, and whatever of other steps is between them."""
    ids = [row.append_id for row in log.rows]
    steps = [ids[at : at + step] for at in range(0, SIZE, step)]
    apart = [one for one in steps if one != sorted(one)]
    among = [
        one for one in steps if any(one[0] < other < one[-1] and other not in one for other in ids)
    ]
    assert apart
    assert among
    monkeypatch.setattr(part, "STEP", step)
    monkeypatch.setattr(ledger_verifier, "_walked", None)  # nothing is to be walked through
    verdict = await verify_ledger(accounts.database, log.published, lambda _rows: None)
    assert (verdict.fault, verdict.size) == (None, SIZE)


@pytest.mark.usefixtures("few_at_once")
async def test_a_log_is_verified_without_a_place_for_temporary_files(
    log, accounts, spares, asked, monkeypatch, tmp_path
):
    """Whoever reads a part: what cannot be put away is walked through, and none of it is lost."""
    monkeypatch.setattr(segments, "SPOOLED_BYTES_MAX", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    verdict = await verify(accounts.database, log, spares=spares)
    assert (verdict.fault, verdict.size, outcomes(asked)) == (None, SIZE, ["read"] * 2)
    assert (await verify_ledger(accounts.database, log.published, lambda _rows: None)).ok


async def test_a_part_whose_process_is_killed_is_read_here(
    log, accounts, spares, asked, monkeypatch
):
    """The verdict comes all the same; what it had passed is taken back."""
    read, receive = [], Spare.receive

    async def killed(self):
        os.kill(self.pid, signal.SIGKILL)
        return await receive(self)

    monkeypatch.setattr(Spare, "receive", killed)
    verdict = await verify(accounts.database, log, read.append, spares=spares)
    assert (verdict.fault, verdict.size, sum(read)) == (None, SIZE, SIZE)
    assert [one.has_ended for one, _ in asked] == [True, True]
    assert (outcomes(asked), len(spares)) == (["failed"] * 2, 0)
    assert (await verify(accounts.database, log, spares=spares)).ok


async def test_a_part_of_another_server_is_read_here(log, accounts, spares, asked, monkeypatch):
    """A pooler may lead elsewhere, where the same snapshot would be another."""

    async def another(*_arguments):
        return "another one"

    monkeypatch.setattr(confirm, "server_of", another)
    verdict = await verify(accounts.database, log, spares=spares)
    assert (verdict.fault, verdict.size, outcomes(asked)) == (None, SIZE, ["failed"] * 2)


async def test_a_fault_in_the_part_of_a_process_is_found(
    log, owner_connection, accounts, spares, asked
):
    """The other parts are let be, and the walk names it."""
    await disarm(owner_connection, bare=False)
    await owner_connection.execute(
        "update accounts.events set state = state || ' ' where append_id = $1",
        log.rows[SIZE - 2].append_id,
    )
    verdict = await verify(accounts.database, log, spares=spares)
    assert (verdict.position, len(asked)) == (SIZE - 1, 2)
    assert all(one.has_ended or outcome == "read" for one, outcome in asked)


async def test_a_verification_that_is_cut_off_leaves_no_process(log, accounts, spares, asked):
    """A process that hangs ends with the one that asked it; the next verification holds."""
    verifying = asyncio.create_task(verify(accounts.database, log, spares=spares))
    await eventually(lambda: len(asked) == 2)
    os.kill(asked[-1][0].pid, signal.SIGSTOP)
    verifying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await verifying
    assert asked[-1][0].has_ended
    assert (await verify(accounts.database, log, spares=spares)).ok


def test_a_key_that_an_earlier_part_retired_counts_in_no_later_one():
    """A part alone does not know which keys were retired before it."""
    keys = EventKeys({1: b"1", 2: b"2"}, since_start=True, signing=2)
    retiring, later = [
        PartOutcome(*one, (), ActorFaults(), ids_are_kept=True)
        for one in ((10, 1, 2), (20, 2, UNBOUND))
    ]
    assert macs_hold(keys, [retiring, later])
    assert not macs_hold(keys, [retiring, later._replace(lowest_key=1)])
    assert not macs_hold(keys, [retiring._replace(lowest_key=UNBOUND), later])
    assert macs_hold(keys, [retiring._replace(lowest_key=NO_KEY), later])


def test_no_event_is_ours_before_one_was_checked():
    """What the first one is compared with is made by a key that nobody has."""
    keys, digest = EventKeys({1: b"1"}, since_start=True, signing=1), b"d" * 32
    made = {prefix + of(digest) for prefix, of in (PartMacs("live", keys).usual for _ in range(3))}
    assert (len(made), {len(one) for one in made}) == (3, {MAC_BYTES})


@pytest.mark.parametrize("places", [1, 3])
async def test_parts_are_read_through_a_pooler(log, database_url, folder, spares, asked, places):
    """Where it has no place for the other processes, their parts are read here."""
    waits = 2 if places == 1 else int(PATIENCE_SECONDS)
    with (
        logins(database_url) as made,
        pooler(
            database_url, made, folder, default_pool_size=places, query_wait_timeout=waits
        ) as urls,
    ):
        database = Database(
            urls["ACCOUNTS_DATABASE_URL"],
            "accounts",
            pooled=True,
            pool_size=1,
            deadline=PATIENCE_SECONDS,
        )
        await database.open()
        read = []
        verdict = await verify(database, log, read.append, spares=spares)
        await database.close()
    assert (verdict.fault, verdict.size, sum(read)) == (None, SIZE, SIZE)
    assert outcomes(asked) == ["failed" if places == 1 else "read"] * 2


async def verify(database, log, advance=lambda _events: None, *, spares):
    """Verify a log, with processes that may read parts."""
    return await verify_ledger(database, log.published, advance, spares=spares)


def outcomes(asked):
    """Return how the parts went that processes were asked for."""
    return [outcome for _, outcome in asked]
