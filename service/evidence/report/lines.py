"""The lines of a report: one for each event, in the order of the log, read from the log itself.

No read model is used, so a report is complete whatever state those are in. A period begins after
the last event with a time before it, and ends with the last event with a time before its end. So
consecutive periods leave nothing out and repeat nothing, even if clocks were wrong.
"""

import sys
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from projections.activity.reader import ActivityReader, TimelineEntry
from service.core.progress import Advance
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.note import NoteKey
from service.evidence.replay.footing import Ascent, BindingCheckpoints
from service.evidence.replay.history import SECRET
from service.evidence.replay.log_fault import LogFault
from service.evidence.replay.moment import moment_of
from service.evidence.report.names import Names
from service.evidence.rolled_back import snapshot_of
from service.evidence.verify.soundness import as_migrated, refuse_unsound
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.ledger.database import Connection
from service.ledger.ledger import Ledger
from service.ledger.sql import queries

BATCH: Final = 1000
"""Events that are read at once; fewer where they are large."""
SECONDS_MAX: Final = 6 * 3600.0

_TICK: Final = timedelta(microseconds=1)
_MEANINGS: Final = {
    topic: (event.__doc__ or topic).partition("\n")[0].partition(". ")[0].rstrip(".") + "."
    for topic, event in (ACCOUNTS | PARTNER_LEDGER).items()
}
_SQL = queries("service.evidence.report")
DAMAGED: Final = "The stored event is damaged."


class Period(NamedTuple):
    """From a moment until before another, in UTC."""

    since: datetime
    until: datetime


class LogPart(NamedTuple):
    """The part of a ledger's log that a report covers: after a position, up to another."""

    ledger: str
    after: int
    last: int


class ReportLine(NamedTuple):
    """An event. If the stored event is damaged, `at` is None and `data` is empty.

    `actor_name` is None if the ledger of accounts has no name for the actor, or no longer has it.
    """

    ledger: str
    position: int
    at: datetime | None
    event: str
    meaning: str
    actor: str
    actor_name: str | None
    request_id: str
    data: Mapping[str, Any]
    personal: Mapping[str, str]


async def part_of(
    ledger: Ledger, period: Period, keys: Sequence[NoteKey], published: Checkpoint | None
) -> LogPart:
    """Return the positions of a period; `keys` and `published` as of `moment_of`.

    Raises LogFault.
    """
    before = await moment_of(ledger, keys, at=period.since - _TICK, published=published)
    within = await moment_of(ledger, keys, at=period.until - _TICK, published=published)
    return LogPart(ledger.name, before.position, max(before.position, within.position))


class ReportSubject(NamedTuple):
    """What a report is about: the field of events that names it, and its id."""

    field: str
    id: str


class ReportReader:
    """Reads a part of one ledger's log, and proves it by a checkpoint on the way."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        part: LogPart,
        subject: ReportSubject,
        names: Names,
        covering: Signed | None = None,
    ) -> None:
        """Rest the part on `covering`; None: on the smallest checkpoint that covers it."""
        self._covering = covering
        self.part = part
        self.note: str | None = None
        self.count = 0
        self._checkpoints = checkpoints
        self._ledger = checkpoints.ledger
        self._subject = subject
        self._names = names

    async def lines(self, advance: Advance) -> AsyncIterator[ReportLine]:
        """Yield the lines; `advance` gets the number of positions passed.

        At the end, `note` is the checkpoint that covers all of them. Raises LogFault if an event is
        not what was hashed, or hashes are not what was signed; the lines yielded so far are then
        not valid. What events say decides which of them are lines, so that one that was altered
        could be missing. So every event under the checkpoint is read at the end, as it was when
        lines were chosen: EvidenceFault if one is not what was signed.
        """
        _, after, last = self.part
        if after == last:
            return
        name, reader = self._ledger.name, ActivityReader(self._ledger)
        async with (
            as_migrated(self._ledger.database),
            snapshot_of(self._ledger.database, SECONDS_MAX) as connection,
        ):
            positions = await self._concerning(connection)
            signed = BindingCheckpoints(connection, name, self._checkpoints.keys)
            await signed.read()
            covering = self._covering or await self._smallest(signed)
            self.note = covering.note
            ascent = Ascent(covering.checkpoint, await signed.before(after + 1))
            await ascent.climb(connection, name, {}, after)
            done = 0
            while done < len(positions):
                found = await reader.at(positions[done : done + BATCH].tolist())
                used = {one.position: one.leaf for one in found if one.position is not None}
                if not used or max(used) != positions[done + len(used) - 1]:
                    raise LogFault(positions[done], "its event is gone, or that of one after it")
                reached = max(used)
                await ascent.climb(connection, name, used, reached)
                for entry in found:
                    yield self._line(entry)
                self.count += len(found)
                advance(reached - after)
                after = reached
                done += len(used)
            await ascent.rest(connection, name, {})
            advance(last - after)
            await refuse_unsound(connection, name, covering.checkpoint, lambda _events: None)

    async def _smallest(self, signed: BindingCheckpoints) -> Signed:
        """Return the smallest checkpoint that covers the part, with what others signed of it."""
        covering = await signed.cover(self.part.last)
        note = None if covering is None else await signed.note(covering[0])
        if covering is None or note is None:
            raise LogFault(self.part.last, "no checkpoint covers it")
        return Signed(covering[0], await self._checkpoints.full_note(note))

    async def _concerning(self, connection: Connection) -> "array[int]":
        """Return the positions, in eight bytes each: there can be millions."""
        _, after, last = self.part
        statement = _SQL.concerning.on(self._ledger.name)
        found: bytes = await connection.fetchval(statement, after, last, *self._subject) or b""
        positions = array("q", found)
        if sys.byteorder == "little":
            positions.byteswap()
        return positions

    def _line(self, entry: TimelineEntry) -> ReportLine:
        meta, data = entry.meta, entry.data or {}
        actor = meta.actor if meta else ""
        return ReportLine(
            self._ledger.name,
            entry.position or 0,
            meta.at if meta else None,
            entry.topic,
            _MEANINGS.get(entry.topic, entry.topic) if meta else DAMAGED,
            actor,
            self._names.of(actor),
            meta.request_id if meta else "",
            {name: value for name, value in data.items() if name not in SECRET},
            entry.personal,
        )
