"""Rebuilding by several processes, which take stretches of the log in turn."""

import asyncio
import os
import signal
from collections import Counter

import pytest

from service.core.forked_processes import NO_SPARES, Spare, Spares, forked
from service.ledger import decoding
from service.ledger.binding import Binding
from service.ledger.events import Unreadable
from service.ledger.rebuild import build as building
from service.ledger.rebuild import filling, row_maker
from service.ledger.rebuild.build import Builder
from service.ledger.rebuild.connecting import connected
from service.ledger.rebuild.filling_process import FillingJob, fill_in, work
from service.ledger.rebuild.progress import BuildProgress
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import rebuild_session
from service.ledger.sql import queries
from tests.patience import eventually
from tests.projections.faulty import Failing, Stalling
from tests.projections.history import number_all
from tests.projections.rebuilding import model, quiet, rebuild, verify
from tests.tables import every_row
from tests.world import STAFF

pytestmark = pytest.mark.followed

TOLD = "the statements are those of the first test here: what parts tell each other is Python's"

SQL = queries("service.ledger.rebuild")
BUILT = "select count(*) from pg_class where relnamespace = to_regnamespace('live_next')"
SESSIONS = """
select count(*) from pg_stat_activity
where application_name = 'claim-ledger rebuild' and datname = current_database()
"""
CUT_OFF = """
select pg_terminate_backend(pid) from pg_stat_activity
where application_name = 'claim-ledger rebuild' and datname = current_database()
    and pid <> pg_backend_pid()
"""
OF_PART = """
select l.position from live.log as l join live.events as e using (append_id)
where e.topic = %s and (l.position - 1) / 3 %% 2 = %s order by 1
"""
FOLLOWED = """
select s.position = h.size from live.subscriptions as s, live.head as h where s.name = %s
"""
SPOIL = """
alter table live.events disable trigger user;
update live.events set state = '{{' where append_id in
    (select append_id from live.log where position in ({}, {}));
alter table live.events enable always trigger append_only;
"""


@pytest.fixture
def started(monkeypatch):
    """Have short logs made in parts, in pages of three positions; return the processes asked."""
    found = []

    async def watched(spare, *arguments, **more):
        found.append(spare)
        await fill_in(spare, *arguments, **more)

    monkeypatch.setattr(building, "PART_EVENTS_MIN", 1)
    monkeypatch.setattr(building, "PAGE_POSITIONS", 3)
    monkeypatch.setattr(filling, "fill_in", watched)
    return found


@pytest.fixture
async def claim_list(world, claims):
    """Return the read model of twenty claims: some moved several times, the last one stays."""
    _, _, made = claims
    commands = world.service.modes["live"].claims
    for stage in ("proceedings", "judgment", "settled"):
        for claim_id in made[:6]:
            await commands.move(claim_id, stage, STAFF)
    found = model(world, "claim_list")
    await number_all(found.ledger)
    return found


def positions(owner, part, topic="ClaimCreated"):
    """Return where events are that one of two parts applies."""
    return [position for (position,) in owner.execute(OF_PART, [topic, part]).fetchall()]


async def test_parts_make_the_rows_that_one_process_makes(claim_list, owner, database_url, started):
    """In the log's order, as the last of several moves shows; each part has some of each stream."""
    rows = "select * from live.claim_list order by claim_id"
    done = await rebuild(database_url, claim_list, if_equal=True)
    alone = owner.execute(rows).fetchall()
    assert (started, done.compared.rows, len(alone)) == ([], 20, 20)
    moved = [row for row in alone if "settled" in row]
    assert len(moved) == 6
    assert min(len(positions(owner, part)) for part in (0, 1)) > 0
    for processes in (2, 3):
        found = await rebuild(database_url, claim_list, if_equal=True, processes=processes)
        assert (found.events, found.compared, found.swapped is not None) == (
            done.events,
            done.compared,
            True,
        )
        assert owner.execute(rows).fetchall() == alone
    assert len(started) == 1 + 2


@pytest.mark.any_postgres(TOLD)
async def test_every_position_is_counted_once(claim_list, database_url, started):
    """Whichever part passes it last."""
    passed = []
    with Spares(1) as spares:
        async with rebuild_session(database_url, "live", spares) as shop:
            await shop.verify(claim_list, passed.append)
    size = await claim_list.ledger.database.reads.fetchrow(SQL.head)
    assert (sum(passed), len(started)) == (size["size"], 1)
    assert min(passed) >= 0


async def test_a_stretch_of_large_events_has_several_pages(
    claim_list, database_url, started, monkeypatch
):
    """Here each event fills a page: all of a stretch are applied before the next one's turn."""
    for module in (decoding, row_maker):
        monkeypatch.setattr(module, "PAGE_BYTES_MAX", 1)
    found = await rebuild(database_url, claim_list, if_equal=True, processes=2)
    assert (found.compared.rows, found.compared.total, len(started)) == (20, 0, 1)


async def test_read_models_that_need_sealed_fields_stay_in_one_process(
    world, database_url, started
):
    """Other processes are given no keys."""
    assert model(world, "connections").projector.reads_personal
    found = await verify(database_url, model(world, "connections"), processes=2)
    assert (found.total, started) == (0, [])


async def test_a_part_that_ends_leaves_nothing_behind(
    claim_list, owner, database_url, started, tmp_path
):
    """Its process is killed, or the rebuild is cancelled, in the middle: it can begin again."""
    second = positions(owner, 1)[1]

    async def killed(_rebuilding):
        os.kill(started[-1].pid, signal.SIGKILL)

    async def cancelled(rebuilding):
        rebuilding.cancel()

    ends = {
        "a process is killed": (killed, RebuildRefused),
        "the rebuild is cancelled": (cancelled, asyncio.CancelledError),
    }
    with every_row() as row:
        for number, (name, (end, raised)) in enumerate(ends.items()):
            with row(name):
                reached = tmp_path / str(number)
                stalling = claim_list._replace(projector=Stalling(second, reached))
                rebuilding = asyncio.create_task(rebuild(database_url, stalling, processes=2))
                await eventually(reached.exists)
                await end(rebuilding)
                with pytest.raises(raised):
                    await rebuilding
                assert owner.execute(BUILT).fetchone() == (0,)
                await eventually(lambda: owner.execute(SESSIONS).fetchone() == (0,))
                again = await rebuild(database_url, claim_list, if_equal=True, processes=2)
                assert (again.compared.rows, again.compared.total) == (20, 0)


async def test_an_event_that_cannot_be_decoded_is_that_of_one_process(
    world, claim_list, owner, database_url, started
):
    """In a part of another process, and in this one's: refused, or put aside in the log's order."""
    places = sorted((positions(owner, 0)[-1], positions(owner, 1)[0]))
    activity = model(world, "activity")
    await eventually(lambda: _followed(activity, owner))
    owner.execute(SPOIL.format(places[0], places[0]))
    for processes in (1, 2):
        with pytest.raises(Unreadable, match=f"^position {places[0]} of live cannot be read: it"):
            await rebuild(database_url, claim_list, processes=processes)
        assert owner.execute(BUILT).fetchone() == (0,)
    owner.execute(SPOIL.format(*places))
    (size,) = owner.execute("select size from live.head").fetchone()
    found = []
    for processes in (1, 2):
        done = await rebuild(database_url, activity, processes=processes)
        assert done.swapped is None
        found.append([one for one in done.put_aside if one.position <= size])  # others may come
    assert found[0] == found[1]
    assert {*places} < {one.position for one in found[0]}
    assert len(started) == 2


@pytest.mark.any_postgres(TOLD)
async def test_each_skipped_event_is_told_once(claim_list, database_url, started, monkeypatch):
    """There may be as many as the log has: a process is told of those since its last turn."""
    told, send = [], Spare.send

    def watched(self, message):
        if isinstance(message, building.BuildProgress):
            told.append(message.skipped)
        send(self, message)

    monkeypatch.setattr(Spare, "send", watched)
    failing = claim_list._replace(projector=Failing())
    found = []
    for count in (0, 1, 2):
        with Spares(count) as spares:
            async with rebuild_session(database_url, "live", spares) as shop:
                found.append((await shop.verify(failing, quiet)).put_aside)
    assert found[0] == found[1] == found[2]
    assert (len(found[0]) >= 20 + 3 * 6, len(started)) == (True, 3)
    each = Counter(one.position for skipped in told for one in skipped)
    assert each.total() > len(found[0])
    assert max(each.values()) == 3, "once in the run of two processes, and twice in that of three"


async def test_parts_of_a_rebuild_that_was_killed_keep_others_out_until_they_end(
    claim_list, database_url, started
):
    """What they still write would be among another one's rows; they end when nobody asks."""
    ledger = claim_list.ledger
    async with connected(database_url) as killed:
        await killed.execute(SQL.lock_shared.on("live"), "live")
        other = forked()
        other.ask(work, _job(claim_list, database_url, await ledger.binding()))
        await other.receive()  # it has its share
    with pytest.raises(RebuildRefused, match="another rebuild or verification of live is running"):
        await rebuild(database_url, claim_list)
    other.pipe.close()  # as where the one that asked was killed
    await asyncio.to_thread(os.waitpid, other.pid, 0)  # by itself
    again = await eventually(lambda: _rebuilt(database_url, claim_list))
    assert (again.compared.rows, started) == (20, [])
    async with connected(database_url) as locking:
        await locking.execute(SQL.lock.on("live"), "live")
        with Spares(1) as spares, spares.borrowed() as late:
            job = _job(claim_list, database_url, await ledger.binding())
            with pytest.raises(RebuildRefused, match="has ended"):
                await fill_in(late, job, None, 1, may_skip=False)


class _CutOff:
    """A turn at whose beginning PostgreSQL ends the sessions of all other processes."""

    def __init__(self, connection):
        self._connection = connection

    async def begin(self):
        """End them."""
        await self._connection.execute(CUT_OFF)
        return BuildProgress()


async def test_a_part_whose_connections_are_lost_says_so(claim_list, database_url):
    """Whatever the driver makes of it: the rebuild is refused by a line, and can begin again."""
    binding = await claim_list.ledger.binding()
    async with connected(database_url) as sharing:
        await sharing.execute(SQL.lock_shared.on("live"), "live")
        with Spares(1) as spares, spares.borrowed() as part:
            job = _job(claim_list, database_url, binding)
            job = job._replace(recipe=job.recipe._replace(part=0))
            with pytest.raises(RebuildRefused, match="could not read or write its part"):
                await fill_in(part, job, _CutOff(sharing), 20, may_skip=False)


def _job(claim_list, url, binding: Binding):
    builder = Builder(claim_list, "live_next", None, None, quiet, url, NO_SPARES)
    recipe = builder._maker(2).recipe  # noqa: SLF001 - what a process is given
    return FillingJob(url, recipe._replace(part=1), binding)


async def _rebuilt(url, claim_list):
    """Rebuild; None while another one is said to be running, whose session is about to end."""
    try:
        return await rebuild(url, claim_list, if_equal=True)
    except RebuildRefused:
        return None


def _followed(activity, owner):
    return owner.execute(FOLLOWED, [activity.name]).fetchone() == (True,)
