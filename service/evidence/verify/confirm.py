"""Confirming that a log holds: its parts are checked at once, each by a process of its own.

It says that all holds, or nothing: then the walk reads the log from the start, and finds what is
wrong, and where. Beyond what each part checks by itself, the parts are joined: the tree over all of
them is compared with every checkpoint, streams go on from one part to a later one, and no event is
bound by a key that an earlier part retired.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple
from uuid import UUID

from service.evidence.verify.known_actors import KnownActors
from service.evidence.verify.part import PartCheck, PartOutcome, Passed, Task
from service.evidence.verify.part_process import (
    CheckedPart,
    LocalPart,
    PartFailed,
    PartPlace,
    PartProcess,
)
from service.evidence.verify.walk import Walk
from service.ledger.database import Connection, Database
from service.ledger.event_macs import EventKeys
from service.ledger.sql import queries

PROCESSES_MAX: Final = 4
"""As many connections to the ledger."""
PART_EVENTS_MIN: Final = 25_000
"""A smaller part is read before a process for it has started."""
_STREAMS: Final = 10_000

_SQL = queries("service.evidence.verify")
Advance = Callable[[int], object]


class Judges(NamedTuple):
    """What the rows of a ledger are judged by."""

    schema: str
    keys: EventKeys | None
    actors: KnownActors | None


class Reading(NamedTuple):
    """Where other processes read: a database whose sessions share snapshots, and their limits.

    In seconds: what all may take, and a statement.
    """

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
    parts: int = PROCESSES_MAX,
) -> bool:
    """Return whether the log holds, in the caller's snapshot; `walk` has its tree then.

    Without `reading` this process reads all parts alone. What `walk` and `advance` were told is of
    no use where this returns False.
    """
    sizes = [one.size for one in walk.expected]
    if any(one.root is None for one in walk.expected) or walk.compare() is not None:
        return False
    size = max(0, await connection.fetchval(_SQL.size.on(judges.schema)) or 0)
    count = parts if reading is None else min(processes(), parts, size // PART_EVENTS_MIN)
    tasks = tasks_of(judges, size, sizes, max(1, count))
    with ExitStack() as ending:
        joined = _Joined(walk, len(tasks), advance)
        if reading is None or len(tasks) == 1:
            here = [PartCheck(task, joined.of(number)) for number, task in enumerate(tasks)]
            outcomes = [await part.check(connection) for part in here]
            checked: Sequence[CheckedPart] = [LocalPart(part) for part in here]
        else:
            place = await _place(connection, judges.schema, reading)
            checked = [
                PartProcess(place, task, joined.of(number)) for number, task in enumerate(tasks)
            ]
            for one in checked:
                ending.callback(one.close)
            outcomes = await _outcomes(checked)
        sound = [one for one in outcomes if one is not None]
        if len(sound) < len(tasks) or not joined.holds() or walk.end() is not None:
            return False
        return macs_hold(judges.keys, sound) and await _streams_hold(
            connection, walk, checked, sound, judges.schema
        )


def processes() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tasks_of(judges: Judges, size: int, sizes: Iterable[int], count: int) -> list[Task]:
    """Return the parts of a log of about so many events, cut where the tree is compared."""
    cuts = sorted({one for one in sizes if one > 0})
    ends = [size * number // count for number in range(count)]
    return [
        Task(
            judges.schema,
            after,
            end,
            [cut for cut in cuts if after < cut and (end is None or cut <= end)],
            judges.keys,
            judges.actors,
        )
        for after, end in zip(ends, [*ends[1:], None], strict=True)
    ]


async def _place(connection: Connection, schema: str, reading: Reading) -> PartPlace:
    snapshot = await connection.fetchval(_SQL.snapshot_export.on(schema))
    return PartPlace(reading.database.url, str(snapshot), *reading[1:])


async def _outcomes(parts: Sequence[PartProcess]) -> list[PartOutcome | None]:
    """Wait for all parts, or for the first one that does not hold."""
    checks = [asyncio.create_task(part.check()) for part in parts]
    try:
        for check in asyncio.as_completed(checks):
            if await check is None:
                return [None]
        return [check.result() for check in checks]
    except PartFailed:
        return [None]
    finally:
        for check in checks:
            check.cancel()


class _Joined:
    """The tree over the parts, which come in side by side, compared where the walk wants it."""

    def __init__(self, walk: Walk, count: int, advance: Advance) -> None:
        self._walk = walk
        self._advance = advance
        self._passed: list[list[Passed]] = [[] for _ in range(count)]

    def of(self, number: int) -> Callable[[Passed], object]:
        """Return what takes that which a part sends."""

        def take(passed: Passed) -> None:
            self._advance(passed.rows)
            if passed.subtrees:
                self._passed[number].append(passed)

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
    parts: Sequence[CheckedPart],
    outcomes: Sequence[PartOutcome],
    schema: str,
) -> bool:
    """Return whether streams go on where they were in the parts before; the walk learns the last.

    Only of those streams that have events which wait for their number.
    """
    for number, (part, outcome) in enumerate(zip(parts, outcomes, strict=True)):
        earlier = parts[:number]
        streams = [stream for stream, _, _ in outcome.continued]
        found = await _last(earlier, streams)
        for (_, version, append_id), before in zip(outcome.continued, found, strict=True):
            if before is None or version != before[0] + 1 or append_id <= before[1]:
                return False
        if None in await _last(earlier, list(outcome.acted)):
            return False
        if earlier:
            async for ids in part.begun():
                if not all([await one.lacks(ids) for one in earlier]):
                    return False
    rows = await connection.fetch(_SQL.waiting_streams.on(schema))
    waiting = [row["originator_id"] for row in rows if isinstance(row["originator_id"], UUID)]
    for stream, last in zip(
        waiting, await _last(parts, [one.bytes for one in waiting]), strict=True
    ):
        if last is not None:
            walk.rows.streams.put(stream, *last)
    return True


async def _last(
    parts: Sequence[CheckedPart], streams: Sequence[bytes]
) -> list[tuple[int, int] | None]:
    """Return the last version and append_id of each stream in these parts; None: it has none."""
    found: list[tuple[int, int] | None] = [None] * len(streams)
    for start in range(0, len(streams), _STREAMS):
        some = list(streams[start : start + _STREAMS])
        for part in parts:  # the last one that has events of a stream counts
            for at, last in enumerate(await part.last(some), start):
                found[at] = last or found[at]
    return found
