"""Confirming that a log holds: this process and some others check its parts at the same time.

The result is either that everything holds, or nothing: then the walk reads the log from the start,
and finds what is wrong, and where. After each part is checked by itself, the parts are joined. The
tree over all of them is compared with every checkpoint, streams have to continue from one part to a
later one, and no event may have a MAC of a key that an earlier part retired.

Events of somebody who could not act are no fault of the log, which has them for good. They are
counted here, too: otherwise, no verification after the first of them would be fast.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import reduce
from itertools import zip_longest
from typing import Final, NamedTuple
from uuid import UUID

from service.core.forked_processes import Spares
from service.core.progress import Advance
from service.evidence.verify.actor_faults import UNREGISTERED, ActorFaults, actor_fault
from service.evidence.verify.actors import ALL_PROVEN, Actors
from service.evidence.verify.known_actors import KnownActors
from service.evidence.verify.part import PartCheck, PartOutcome, Passed, Task
from service.evidence.verify.part_process import PartFailed, PartPlace, check_in, server_of
from service.evidence.verify.segments import Acted, JoinedStreams, Segments
from service.evidence.verify.walk import Walk
from service.ledger.database import Connection, Database
from service.ledger.event_macs import EventKeys
from service.ledger.sql import queries

PART_EVENTS_MIN: Final = 10_000
"""A smaller part is not worth a connection of its own."""
AHEAD: Final = 5_000
"""Events that are read before another process has connected."""

_SQL = queries("service.evidence.verify")


class Judges(NamedTuple):
    """What the rows of a ledger are checked against. `proven` is that of `Actors`."""

    schema: str
    keys: EventKeys | None
    actors: KnownActors | None
    proven: int = ALL_PROVEN


class Reading(NamedTuple):
    """Where other processes read: a database whose sessions share snapshots, and their limits.

    The limits are in seconds: for everything, and for a statement.
    """

    spares: Spares
    database: Database
    deadline: float
    statement_seconds_max: float


async def confirmed(
    connection: Connection,
    judges: Judges,
    walk: Walk,
    advance: Advance,
    *,
    reading: Reading | None,
    parts: int = 1,
    tell: Callable[[bool], object] = lambda _are_kept: None,
) -> bool:
    """Return whether the log holds, in the caller's snapshot; `walk` has its tree then.

    Without `reading`, this process reads all `parts` alone. If this returns False, ignore what
    `walk` and `advance` have received. `tell` receives whether the ids that numbered events have
    drawn are kept from others, which no event depends on, unless nobody has checked that.
    """
    sizes = [one.size for one in walk.expected]
    if any(one.root is None for one in walk.expected) or walk.compare() is not None:
        return False
    size = max(0, await connection.fetchval(_SQL.size.on(judges.schema)) or 0)
    count = parts if reading is None else min(1 + len(reading.spares), size // PART_EVENTS_MIN)
    tasks = tasks_of(judges, size, sizes, max(1, count))
    joined = _Joined(walk, len(tasks), advance)
    with closing(joined.streams):
        outcomes = await _outcomes(connection, tasks, joined, reading)
        if outcomes is None:
            return False
        tell(all(one.ids_are_kept for one in outcomes))
        return (
            joined.holds()
            and walk.end() is None
            and macs_hold(judges.keys, outcomes)
            and await _streams_hold(connection, walk, joined.streams, outcomes, judges.schema)
        )


def tasks_of(judges: Judges, size: int, sizes: Iterable[int], count: int) -> list[Task]:
    """Return the parts of a log of about so many events, cut where the tree is compared.

    The first one begins at once, and is larger by what it has read when the others have started.
    """
    cuts = sorted({one for one in sizes if one > 0})
    ahead = min(AHEAD, size // count)
    ends = [0, *(ahead + (size - ahead) * number // count for number in range(1, count))]
    return [
        Task(
            judges.schema,
            after,
            end,
            [cut for cut in cuts if after < cut and (end is None or cut <= end)],
            judges.keys,
            judges.actors,
            judges.proven,
        )
        for after, end in zip(ends, [*ends[1:], None], strict=True)
    ]


async def _outcomes(
    connection: Connection, tasks: Sequence[Task], joined: "_Joined", reading: Reading | None
) -> Sequence[PartOutcome] | None:
    """Check the parts, the first one here; return None as soon as one may not hold."""
    here = PartCheck(tasks[0], joined.of(0))
    with ExitStack() as ending:
        checks: list[asyncio.Task[PartOutcome | PartFailed | None]] = []
        if reading is not None and len(tasks) > 1:
            place = await _place(connection, tasks[0].schema, reading)
            for number, task in enumerate(tasks[1:], 1):
                spare = ending.enter_context(reading.spares.borrowed())
                check = check_in(spare, place, task, joined.of(number))
                checks.append(asyncio.create_task(_outcome(check, here)))
        ending.callback(_cancel, checks)
        found = [await here.check(connection)]
        waiting = set(checks)
        while waiting and None not in found:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found += [one.result() for one in done if one.result() is None]
        if None in found:
            return None
        found += [one.result() for one in checks]
    return await _rest(connection, tasks, joined, found)


async def _rest(
    connection: Connection,
    tasks: Sequence[Task],
    joined: "_Joined",
    found: Sequence[PartOutcome | PartFailed | None],
) -> Sequence[PartOutcome] | None:
    """Read the parts here that no process has read; return the outcomes of all."""
    outcomes: list[PartOutcome] = []
    for number, (task, known) in enumerate(zip_longest(tasks, found)):
        outcome = known
        if not isinstance(outcome, PartOutcome):
            outcome = await PartCheck(task, joined.of(number)).check(connection)
        if outcome is None:
            return None
        outcomes.append(outcome)
    return outcomes


async def _outcome(
    check: Awaitable[PartOutcome | None], here: PartCheck
) -> PartOutcome | PartFailed | None:
    """Wait for a part; where it may not hold, stop `here`, too."""
    try:
        outcome = await check
    except PartFailed as failed:
        return failed
    if outcome is None:
        here.stop()
    return outcome


def _cancel(checks: Iterable["asyncio.Task[PartOutcome | PartFailed | None]"]) -> None:
    for check in checks:
        check.cancel()


async def _place(connection: Connection, schema: str, reading: Reading) -> PartPlace:
    snapshot = await connection.fetchval(_SQL.snapshot_export.on(schema))
    _, database, *seconds = reading
    server = await server_of(connection, schema)
    return PartPlace(database.url, database.is_pooled, server, str(snapshot), *seconds)


class _Joined:
    """The tree over the parts, which arrive concurrently, compared at the sizes the walk wants."""

    def __init__(self, walk: Walk, count: int, advance: Advance) -> None:
        self._walk = walk
        self._advance = advance
        self._passed: list[list[Passed]] = [[] for _ in range(count)]
        self._rows = [0] * count
        self.streams = JoinedStreams(count)

    def of(self, number: int) -> Callable[[Passed | Segments], object]:
        """Return what takes that which a part sends, from its start."""
        self._advance(-self._rows[number])
        self._rows[number] = 0
        self._passed[number].clear()
        self.streams.forget(number)

        def take(sent: Passed | Segments) -> None:
            if isinstance(sent, Segments):
                self.streams.put(number, sent)
                return
            self._advance(sent.rows)
            self._rows[number] += sent.rows
            if sent.subtrees:
                self._passed[number].append(sent)

        return take

    def holds(self) -> bool:
        """Return whether the tree has the root of each checkpoint."""
        tree = self._walk.rows.tree
        for passed in (one for part in self._passed for one in part):
            for level, node in passed.subtrees:
                tree.append_subtree(level, node)
            if tree.size != passed.size or self._walk.compare() is not None:
                return False
        return True


def macs_hold(keys: EventKeys | None, outcomes: Sequence[PartOutcome]) -> bool:
    """Return whether no event is bound by a key that a part before its own retired."""
    if keys is None:
        return True
    oldest = keys.oldest
    for outcome in outcomes:
        if outcome.lowest_key < oldest:
            return False
        oldest = max(oldest, outcome.oldest_key)
    return True


async def _streams_hold(
    connection: Connection,
    walk: Walk,
    streams: JoinedStreams,
    outcomes: Sequence[PartOutcome],
    schema: str,
) -> bool:
    """Return whether streams go on where they were in the parts before; the walk learns the last.

    Only of those streams that have events which wait for their number. It learns of the actors,
    too.
    """
    rows = await connection.fetch(_SQL.waiting_streams.on(schema))
    waiting = [row["originator_id"] for row in rows if isinstance(row["originator_id"], UUID)]
    acted = [
        (stream, part, Acted.of(packed))
        for part, outcome in enumerate(outcomes)
        for stream, packed in outcome.acted
    ]
    faults = reduce(ActorFaults.joined, (outcome.actors for outcome in outcomes))
    found = streams.whole({*(one.bytes for one in waiting), *(stream for stream, *_ in acted)})
    if found is None:
        return False
    for stream, part, one in acted:
        if stream in found and found[stream].began >= (part, one.turn):
            return False  # registered too late: which of its events were before is not known here
    lacking = [(stream, one) for stream, _, one in acted if stream not in found]
    if {stream for stream, _ in lacking}.intersection(one.bytes for one in waiting):
        return False  # what waits may register them
    if lacking:
        unregistered = await _unregistered(connection, schema, [one for _, one in lacking])
        faults = faults.joined(unregistered)
    walk.confirmed = faults
    for stream in waiting:
        if (last := found.get(stream.bytes)) is not None:
            walk.rows.streams.put(stream, last.version, last.append_id)
    return True


async def _unregistered(
    connection: Connection, schema: str, lacking: Sequence[Acted]
) -> ActorFaults:
    """Return the faults of entities that acted, and of which no part has the stream."""
    position = min(one.position for one in lacking)
    row = await connection.fetchrow(_SQL.states.on(schema), position - 1, position)
    meta = None if row is None else Actors.meta_of(row["state"])
    actor = "" if meta is None else meta.actor
    first = actor_fault(position, actor, UNREGISTERED)
    return ActorFaults(first, sum(one.times for one in lacking))
