"""What a log is compared with: stored checkpoints, published ones, and a given one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from service.archive.port import Archive, ObjectTooLarge
from service.core.counted import counted
from service.evidence.checkpoint import NOTE_BYTES_MAX, Checkpoint
from service.evidence.checkpoints.names import TOP, leaves_name, note_name, parsed, parsed_streams
from service.evidence.demands import NO_DEMANDS, Demands
from service.evidence.lineages import Lineages
from service.evidence.note import NoteInvalid, NoteKey
from service.ledger.database import Row

_AT_ONCE: Final = 16
"""Objects fetched at a time: a bucket answers in tens of milliseconds each."""


class ReadNote(NamedTuple):
    """A published note: the origin and size in its name, and its text; None if it is not text."""

    origin: str
    size: int
    text: str | None

    @property
    def leaves_name(self) -> str:
        """The name of the hashes since the note published before it."""
        return leaves_name(self.origin, self.size)


Read = Callable[[str, int], Awaitable[bytes | None]]
"""Returns an object of at most so many bytes; raises ObjectTooLarge, and ArchiveUnavailable."""


async def _nothing(_name: str, _bytes_max: int) -> bytes | None:
    return None


@dataclass(frozen=True)
class Evidence:
    """Keys to check signatures with, and what is known from outside the database.

    `published` are of one ledger, by size; None if nothing is ever published. `given` is a
    checkpoint that was opened already. `read` fetches an object of the archive: the raw 32-byte
    hashes that were published with a checkpoint, or a note that was not there before. `has_leaves`:
    it has every existing object. `streams` has origin and size of each published index of streams.
    At least one checkpoint must have the required signatures of others.
    """

    keys: Sequence[NoteKey]
    published: Sequence[ReadNote] | None = None
    given: Checkpoint | None = None
    read: Read = field(default=_nothing)
    has_leaves: bool = False
    demands: Demands = NO_DEMANDS
    streams: Sequence[tuple[str, int]] = ()


async def published_evidence(
    archive: Archive | None,
    ledger: str,
    keys: Sequence[NoteKey],
    given: Checkpoint | None,
    demands: Demands = NO_DEMANDS,
) -> Evidence:
    """Fetch what was published of a ledger; raises ArchiveUnavailable.

    Call it before the snapshot of the database is taken: checkpoints are committed before they are
    published, so the snapshot then has all published ones.
    """
    if archive is None:
        return Evidence(keys, given=given, demands=demands)
    names = await archive.names(TOP)
    named, streams = (
        [one for one in map(parse, names) if one and one[0].split("/")[-2:-1] == [ledger]]
        for parse in (parsed, parsed_streams)
    )
    gate = asyncio.Semaphore(_AT_ONCE)

    async def note(origin: str, size: int) -> ReadNote:
        content, text = None, None
        async with gate:
            with suppress(ObjectTooLarge):
                content = await archive.get(note_name(origin, size), NOTE_BYTES_MAX)
        with suppress(UnicodeDecodeError):
            text = None if content is None else content.decode()
        return ReadNote(origin, size, text)

    notes = await asyncio.gather(*(note(*one) for one in named))
    ordered = sorted(notes, key=lambda one: one.size)
    return Evidence(
        keys, ordered, given, archive.get, has_leaves=True, demands=demands, streams=streams
    )


class Expected(NamedTuple):
    """What is expected of a log when it has `size` events: that root, or else a known fault.

    `tree` is the compact range that the database stores beside a checkpoint, if it does. Where
    `may_be_behind`, a log that is shorter need not have lost anything.
    """

    size: int
    root: bytes | None
    sentence: str
    origin: str = ""
    tree: bytes | None = None
    may_be_behind: bool = False


class Expectations:
    """Everything that a log is compared with, by size."""

    def __init__(
        self,
        ledger: str,
        evidence: Evidence,
        lineages: Lineages,
        *,
        is_standby: bool = False,
    ) -> None:
        """Expect nothing yet: `take` adds what is stored, and `end` what else there is.

        A standby may not have replayed yet what is known from elsewhere.
        """
        self._ledger = ledger
        self._evidence = evidence
        self._keys = evidence.keys
        self._lineages = lineages
        self._is_standby = is_standby
        self._opened: dict[str, Checkpoint] = {}
        self._stored: set[tuple[str, int]] = set()
        self._sound: list[Expected] = []
        self._fault: Expected | None = None
        self._sizes: dict[str, list[int]] = {one.origin: [] for one in lineages.begun}
        self.by_size: Sequence[Expected] = ()
        self.set_aside: set[tuple[str, int]] = set()
        """Origin and size of sound checkpoints that a later lineage says are of lost events."""
        self.published = None if evidence.published is None else 0
        """How many sound ones of this installation were published; None: there is no archive."""
        self.behind = 0
        """The size of the largest that a standby's database does not have, or know, yet."""

    def take(self, rows: Iterable[Row]) -> None:
        """Take the next stored checkpoints.

        Only what we have signed is kept, and the first fault: whoever has the ledger's login can
        store any number.
        """
        for row in rows:
            origin, size = row["origin"], row["size"]
            if origin in self._sizes and size is not None:
                self._sizes[origin].append(size)
            for one in self._of_stored(row):
                if one.root is not None:
                    self._sound.append(one)
                elif self._fault is None or one.size < self._fault.size:
                    self._fault = one

    async def end(self) -> None:
        """Take what was published and given; `by_size` has everything then.

        Raises ArchiveUnavailable.
        """
        evidence, lineages = self._evidence, self._lineages
        expected = [*await unpublished(evidence, self._sizes), *self._sound]
        if self._fault is not None:
            expected.append(self._fault)
        expected += [one for note in evidence.published or () for one in self._of_published(note)]
        expected += self._of_given(evidence.given)
        # Roots first: an altered event weighs more than an altered note.
        if lineages.fault is not None:
            expected.append(broken(*lineages.fault))
        self.by_size = sorted(expected, key=lambda one: (one.size, one.root is None))

    def _of_stored(self, row: Row) -> Iterable[Expected]:
        origin, size, note = row["origin"], row["size"], row["note"]
        what = f"The stored checkpoint of {counted(size, 'event')}"
        if (origin, size) in self._stored:
            return [broken(size, f"{what} is in the database more than once.")]
        try:
            checkpoint = self._open(note)
        except NoteInvalid as error:
            return [broken(size, f"{what} is not sound: {error}.")]
        if (checkpoint.origin, checkpoint.size) != (origin, size):
            return [broken(size, f"{what} holds the note of another one.")]
        self._stored.add((origin, size))
        bound = self._binding(what, checkpoint, is_stored=True)
        return [one._replace(tree=row["tree"]) for one in bound]

    def _of_published(self, note: ReadNote) -> Iterable[Expected]:
        what = f"The published checkpoint of {counted(note.size, 'event')}"
        try:
            checkpoint = self._open(note.text)
        except NoteInvalid as error:
            names = {key.name for key in self._keys}
            is_ours = note.origin.rsplit("/", 2)[0] in names
            if not is_ours and self._lineages.reach(note.origin) is None:
                return []  # another installation publishes to the same archive
            return [broken(note.size, f"{what} is not sound: {error}.")]
        if (checkpoint.origin, checkpoint.size) != (note.origin, note.size):
            return [broken(note.size, f"{what} is published under another one's name.")]
        self.published = (self.published or 0) + 1
        expected = list(self._binding(what, checkpoint))
        is_kept = (note.origin, note.size) in self._stored
        has_begun = any(one.origin == note.origin for one in self._lineages.begun)
        # What a later lineage says is lost binds nothing, and a restore may have lost its row.
        if expected and not is_kept and has_begun:
            if self._is_standby and self._is_ahead(note):
                self.behind = max(self.behind, note.size)
            else:
                expected.append(broken(note.size, f"{what} is missing from the database."))
        return expected

    def _is_ahead(self, note: ReadNote) -> bool:
        """Return whether nothing is stored that was stored after what is noted."""
        origins = [one.origin for one in self._lineages.begun]
        later = origins[origins.index(note.origin) + 1 :]
        is_last = note.size > max(self._sizes[note.origin], default=0)
        return is_last and not any(self._sizes[origin] for origin in later)

    def _of_given(self, given: Checkpoint | None) -> Iterable[Expected]:
        if given is None:
            return []
        what = f"The given checkpoint of {counted(given.size, 'event')}"
        reach = self._lineages.reach(given.origin)
        if reach is not None and given.size > reach:
            sentence = (
                f"{what} is of an earlier lineage, of which this log has only the first {reach}: "
                "the events after those were lost before the present lineage began."
            )
            return [broken(reach + 1, sentence)]
        return self._binding(what, given)

    def _binding(
        self, what: str, checkpoint: Checkpoint, *, is_stored: bool = False
    ) -> Iterable[Expected]:
        """Return what a sound checkpoint requires of the log.

        What is stored, a standby has with the events that it covers: only of others it may be
        behind.
        """
        origin, size, root = checkpoint
        may_be_behind = self._is_standby and not is_stored
        expected = Expected(size, root, what, origin, may_be_behind=may_be_behind)
        if self._lineages.reach(origin) is None:
            unknown = broken(size, f"{what} is of {origin}, which is no lineage of this log.")
            if checkpoint.ledger != self._ledger:
                return [unknown]
            if may_be_behind:
                self.behind = max(self.behind, size)
                return [expected]
            # A log that was cut off may have lost its lineages too: its root shows where.
            return [expected, unknown]
        if self._lineages.sets_aside(origin, size):
            self.set_aside.add((origin, size))
            return []
        return [expected]

    def _open(self, note: str | None) -> Checkpoint:
        """Open a note, once for all its copies; raises NoteInvalid."""
        if note is None:
            raise NoteInvalid("not a signed note")
        known = self._opened.get(note)
        if known is None:
            known = self._opened[note] = Checkpoint.open(note, self._keys)
        return known


async def unpublished(evidence: Evidence, sizes: Mapping[str, Sequence[int]]) -> list[Expected]:
    """Return the fault of the first stored checkpoint that must be published and is not, if any.

    `sizes` are those of the stored ones of each lineage.

    The newest one of a lineage may be on its way, or never have come there before another lineage
    followed. Those before it are published before another is stored, so the archive is asked once
    more, after the database's snapshot. Raises ArchiveUnavailable.
    """
    if evidence.published is None:
        return []
    there = {(note.origin, note.size) for note in evidence.published}
    due = [(size, origin) for origin in sizes for size in sorted(sizes[origin])[:-1]]
    for size, origin in sorted(due):
        if (origin, size) in there:
            continue
        if await evidence.read(note_name(origin, size), NOTE_BYTES_MAX) is None:
            what = f"The stored checkpoint of {counted(size, 'event')}"
            return [broken(size, f"{what} is not where they are published.")]
    return []


def broken(size: int | None, sentence: str) -> Expected:
    """Return a fault that is known before the log is read, at the last event that it concerns."""
    return Expected(size or 0, None, sentence)
