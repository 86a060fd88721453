"""Signing checkpoints of a ledger, storing and publishing them (decision 23).

What a checkpoint adds to the one before it is read again from the events, and its tree goes on from
that one's, whose note has to be the published one. Older events are not read again each time: that
they are still what was signed is for `audit verify` to say. A checkpoint is stored in a transaction
that waits for the synchronous replica, where there is one, and published after that: no published
checkpoint is beyond what a failover keeps.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from service.archive.port import Archive, ArchiveUnavailable
from service.core.ids import NewId, new_id
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begin_first, lineages
from service.evidence.checkpoints.log_tree import (
    LedgerForked,
    check_head,
    extended,
    leaves_of_log,
    read_part,
)
from service.evidence.checkpoints.past import PublishedHistory
from service.evidence.checkpoints.published import ArchiveEmpty, Published
from service.evidence.checkpoints.stored import KeyMissing, StoredCheckpoint, StoredCheckpoints
from service.evidence.note import NoteKey
from service.facts.lineages import LineageBegun
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

_SQL = queries("service.evidence.checkpoints")

log = structlog.get_logger()

__all__ = [
    "CheckpointState",
    "Checkpoints",
    "KeyMissing",
    "LedgerForked",
    "MadeCheckpoint",
]


class MadeCheckpoint(NamedTuple):
    """A ledger's newest checkpoint; `is_new` where this call has signed it."""

    checkpoint: Checkpoint
    note: str
    is_new: bool
    is_published: bool


class CheckpointState(NamedTuple):
    """How a ledger's checkpoints fare. `size` and `made_at` are the newest one's, if any."""

    forked: bool
    archive_failures: int
    size: int | None
    made_at: datetime | None


class Checkpoints:
    """The checkpoints of one ledger. Any number of processes may make them at once."""

    def __init__(
        self,
        ledger: Ledger,
        keys: Sequence[NoteKey],
        archive: Archive | None,
        *,
        new_id: NewId = new_id,
    ) -> None:
        """Sign with the first of `keys`, verify with all; publish only to an archive."""
        self.ledger = ledger
        self.keys = keys
        self.new_id = new_id
        self.published = None if archive is None else Published(archive, keys)
        self._database = ledger.database
        self._stored = StoredCheckpoints(ledger, keys)
        self._past = PublishedHistory(ledger, keys, self.published)

    async def make(
        self, *, rest_seconds: float | None = None, begin_archive: bool = False
    ) -> MadeCheckpoint:
        """Make a checkpoint: number what waits, sign the log as it is then, store and publish it.

        Where nothing is new, the newest checkpoint is answered, and whatever a crash has left
        unpublished is published. A ledger's first checkpoint begins its first lineage, which is an
        event: there is none of size 0. `rest_seconds`: nothing is signed sooner after the last one.
        `begin_archive`: an archive that holds nothing yet gets all that the present lineage
        has stored.

        Raises:
            KeyMissing, LedgerForked, ArchiveUnavailable: nothing was signed; the last also
                where a signed checkpoint could not be published, which the next call makes up for.
            ArchiveEmpty: one of the last, where the archive is not to be begun.
            LedgerError: as ever.

        """
        try:
            if not begin_archive:
                await self.check_place()
            made = await self._make(rest_seconds)
        except LedgerForked:
            log.error("ledger forked", ledger=self.ledger.name)  # noqa: TRY400 - no fault of code
            await self._database.fetch(_SQL.forked, True)
            raise
        except ArchiveUnavailable:
            await self._database.fetch(_SQL.failed)
            raise
        await self._database.fetch(_SQL.forked, False)
        return made

    async def latest(self) -> tuple[Checkpoint, str] | None:
        """Return the newest checkpoint of the present lineage and its note, as they are stored.

        Nothing is verified here: `Checkpoint.open` does. Raises NoteInvalid for what is no note.
        """
        known = await lineages(self.ledger)
        return await self._stored.newest(known[-1].origin) if known else None

    async def all(self) -> list[tuple[Checkpoint, str]]:
        """Return every stored checkpoint of every lineage, by size; as `latest` does."""
        return await self._stored.all()

    async def begun(self) -> bool:
        """Return whether the ledger has a lineage."""
        return bool(await lineages(self.ledger))

    async def state(self) -> CheckpointState:
        """Return how the checkpoints fare, whichever process makes them."""
        row = await self._database.fetchrow(_SQL.state)
        return CheckpointState(*row) if row is not None else CheckpointState(False, 0, None, None)

    async def number(self) -> None:
        """Wait until committed events have numbers; raises SequencingTimeout after too long."""
        await Sequencer(self._database).number_committed()

    async def check_place(self) -> None:
        """Raise ArchiveEmpty where checkpoints are stored and nothing of them was published.

        Another place than before, or one that was lost, would be filled with a past that nobody has
        held against what was published.
        """
        if self.published is None:
            return
        newest = await self._stored.newest_of_all()
        # Asked first: it is there unless a crash, or another place, lies between.
        if newest is None or await self.published.has(*newest):
            return
        if not await self._past.is_published():
            raise ArchiveEmpty(
                f"the archive holds no checkpoint of {self.ledger.name}, and the database has "
                "some: it is the wrong place, or what was published is lost"
            )

    async def take_back(self, up_to: int) -> None:
        """Store again what was published of the present lineage, up to a size, and is not stored.

        A restore keeps events and can lose a checkpoint over them that was stored a moment later.
        Where the log's tree is another one than was published, this ends without a word.
        """
        begun = await lineages(self.ledger)
        newest = await self._stored.newest(begun[-1].origin) if begun else None
        if self.published is None or not begun or (newest and newest[0].size >= up_to):
            return
        start, tree = newest[0].size if newest else 0, CompactRange()
        for size in await self.published.sizes(begun[-1].origin, behind=start):
            there = await self.published.get(begun[-1].origin, size) if size <= up_to else None
            if there is None:
                return
            async for leaves in leaves_of_log(self._database, tree.size, size):
                tree = await extended(tree, leaves)
            if tree.root() != there[0].root:
                return
            await self._stored.store(*there, tree, start, None)
            start = size

    async def _make(self, rest_seconds: float | None) -> MadeCheckpoint:
        key = self.signing_key()
        await self.number()
        if not await lineages(self.ledger):
            await self._past.known([])
            await begin_first(self.ledger, key, self.new_id)
            await self.number()
        goal = (await Sequencer(self._database).lag()).size
        is_new = False
        while True:
            made = await self._step(key, goal, None if is_new else rest_seconds)
            if isinstance(made, Checkpoint):
                is_new = True
            elif made is not None:
                return made._replace(is_new=is_new)

    async def _step(
        self, key: NoteKey, goal: int, rest_seconds: float | None
    ) -> MadeCheckpoint | Checkpoint | None:
        """Return the new checkpoint at the log's end; None where another came first.

        The end is where the log ended when it was asked for, `goal`: it may grow all the while.
        """
        begun = await lineages(self.ledger)
        last = await self._stored.last(begun[-1].origin) if begun else None
        begun = await self._past.known(begun)
        origin = begun[-1].origin
        if last is None:
            await self._past.hold(begun)
        ahead = await self._ahead(origin, last)
        tree = last.tree if last is not None else CompactRange()
        part = await read_part(self._database, tree.size, ahead[0] if ahead else None)
        if ahead and ahead[-1] > part.head.size:
            raise LedgerForked(
                f"a checkpoint of {ahead[-1]} events was published, the log has {part.head.size}"
            )
        grown = await extended(tree, part.leaves)
        check_head(part.head, grown)
        not_after = None if rest_seconds is None else self._ago(rest_seconds)
        rests = last is not None and not_after is not None and last.made_at > not_after
        ends = part.end == tree.size or (tree.size >= goal and not ahead)
        if last is not None and (rests or ends):
            return MadeCheckpoint(last.checkpoint, last.note, False, self.published is not None)
        checkpoint = Checkpoint(origin, grown.size, grown.root())
        note = checkpoint.sign(key)
        if self.published is not None and checkpoint.size in ahead:
            there = await self.published.get(origin, checkpoint.size)
            if there is None or there[0] != checkpoint:
                raise LedgerForked(f"the first {checkpoint.size} events are not those published")
            note = there[1]
        if not await self._stored.store(checkpoint, note, grown, tree.size, not_after):
            return None
        await self._publish(checkpoint, note, part.leaves)
        return checkpoint

    def signing_key(self) -> NoteKey:
        """Return the key that signs; raises KeyMissing."""
        if not self.keys or not self.keys[0].can_sign:
            raise KeyMissing(
                "no key signs checkpoints: `claim-ledger audit keygen` prints one for "
                "CLAIM_LEDGER_CHECKPOINT_KEYS"
            )
        return self.keys[0]

    def _ago(self, seconds: float) -> datetime:
        return self.ledger.clock() - timedelta(seconds=seconds)

    async def strange(self, known: Sequence[LineageBegun]) -> list[str]:
        """Return the published origins that none of these lineages tells of, oldest first."""
        return await self._past.strange(known)

    async def _ahead(self, origin: str, last: StoredCheckpoint | None) -> list[int]:
        """Return the sizes of what was published beyond the last stored checkpoint.

        Asked before the log is read: what another process signs meanwhile is in the log then.
        """
        if self.published is None:
            return []
        size = 0 if last is None else last.checkpoint.size
        if last is not None:
            there = await self.published.get(origin, size)
            if there is None:
                await self._publish_missing(origin)
            elif there[0] != last.checkpoint:
                raise LedgerForked(f"another checkpoint of {size} events was published")
        return await self.published.sizes(origin, behind=size)

    async def _publish(self, checkpoint: Checkpoint, note: str, leaves: bytes) -> None:
        if self.published is not None:
            await self.published.put(checkpoint, note, leaves)

    async def _publish_missing(self, origin: str) -> None:
        """Publish what was stored and not published: after a crash, or before there was a place."""
        assert self.published is not None  # noqa: S101 - the caller has asked it
        there, start = set(await self.published.sizes(origin)), 0
        for checkpoint, note in await self.all():
            if checkpoint.origin != origin:
                continue
            if checkpoint.size not in there:
                parts = leaves_of_log(self._database, start, checkpoint.size)
                leaves = b"".join([part async for part in parts])
                await self.published.put(checkpoint, note, leaves)
            start = checkpoint.size
