"""Signing checkpoints of a ledger, storing and publishing them (decision 23).

The events that a checkpoint adds to the one before it are read again. Its tree continues that
one's, whose note has to be the published one. Older events are not read again each time: the worker
verifies the whole log within a day, in slices, and nothing is signed over a finding
(service/evidence/verify/slices.py). A checkpoint is stored in a transaction that waits for the
synchronous replica, if there is one, and is published after that. So no published checkpoint covers
more than a failover preserves.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import structlog

from service.archive.port import Archive, ArchiveUnavailable
from service.core.counted import counted
from service.core.ids import NewId, new_id
from service.evidence.authorisation import Unsound, sound_lineages
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.behind import Behind
from service.evidence.checkpoints.finding import refuse_found
from service.evidence.checkpoints.lineage import begin_first, is_numbered, lineages
from service.evidence.checkpoints.log_tree import (
    LedgerForked,
    extended,
    leaves_of_log,
    read_part,
)
from service.evidence.checkpoints.published import ArchiveEmpty, PublishedHistory
from service.evidence.checkpoints.signatures import full_note
from service.evidence.checkpoints.stored import KeyMissing, StoredCheckpoint, StoredCheckpoints
from service.evidence.checkpoints.unbound import refuse_unbound
from service.evidence.countersigners import NOBODY, Countersigners
from service.evidence.note import NoteKey
from service.facts.lineages import LineageBegun
from service.ledger.following.status import is_standby
from service.ledger.ledger import Ledger
from service.ledger.merkle import HASH_BYTES, CompactRange
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries

CLOCKS_DIFFER_MAX: Final = timedelta(minutes=1)
"""A checkpoint dated further ahead than that was made by a wrong clock, or is read by one."""

_SQL = queries("service.evidence.checkpoints")

log = structlog.get_logger()


class MadeCheckpoint(NamedTuple):
    """A ledger's newest checkpoint; `is_new` if this call signed it."""

    checkpoint: Checkpoint
    note: str
    is_new: bool
    is_published: bool


class CheckpointState(NamedTuple):
    """The health of a ledger's checkpoints; `size` and `made_at` are the newest one's, if any."""

    forked: bool
    archive_failures: int
    size: int | None
    made_at: datetime | None

    def ahead_of(self, now: datetime) -> timedelta:
        """Return how far the newest one is dated ahead, beyond what clocks may differ by."""
        ahead = self.made_at - now if self.made_at is not None else timedelta()
        return ahead if ahead > CLOCKS_DIFFER_MAX else timedelta()


@dataclass(eq=False)
class Checkpoints:
    """The checkpoints of one ledger. Any number of processes may make them at once.

    The first of `keys` signs, all of them verify. Without an archive nothing is published.
    `signers` sign after us.
    """

    ledger: Ledger
    keys: Sequence[NoteKey]
    archive: InitVar[Archive | None]
    new_id: NewId = field(default=new_id, kw_only=True)
    signers: Countersigners = field(default=NOBODY, kw_only=True)

    def __post_init__(self, archive: Archive | None) -> None:
        """Reach what is stored and what is published."""
        self.published = PublishedHistory(self.ledger, self.keys, archive)
        self._database = self.ledger.database
        self._sequencer = Sequencer(self.ledger)
        self._stored = StoredCheckpoints(self.ledger, self.keys)

    async def make(
        self, *, rest_seconds: float | None = None, begin_archive: bool = False
    ) -> MadeCheckpoint:
        """Make a checkpoint: number waiting events, sign the log, store and publish the checkpoint.

        With `rest_seconds`, as on a schedule, only what has a number is signed, and a backlog is
        not waited for, except by the first checkpoint of a lineage, whose event needs a number, and
        where more is published than has one.

        If nothing is new, return the newest checkpoint, and publish what a crash left unpublished.
        A ledger's first checkpoint begins its first lineage, which is an event, so there is no
        checkpoint of size 0. Within `rest_seconds` of the last one, nothing is signed.
        `begin_archive`: publish all stored checkpoints of the present lineage to an empty archive.

        Raises:
            KeyMissing, LedgerForked, ArchiveUnavailable: nothing was signed; the last also if a
                signed checkpoint could not be published, which the next call makes up for.
            ArchiveEmpty: one of the last, unless the archive is to be begun.
            LedgerError: from the database.
        """
        try:
            await refuse_found(self.ledger)
            if not begin_archive:
                await self.check_archive()
            made = await self._make(rest_seconds)
        except LedgerForked:
            log.error("ledger forked", ledger=self.ledger.name)  # noqa: TRY400 - no fault of code
            await self._database.background.fetch(_SQL.forked, True)
            raise
        except ArchiveUnavailable:
            await self._database.background.fetch(_SQL.failed)
            raise
        await self._database.background.fetch(_SQL.forked, False)
        return made

    async def latest(self) -> tuple[Checkpoint, str] | None:
        """Return the newest checkpoint of the present lineage and its note, as they are stored.

        Nothing else is verified here; `Checkpoint.open` does that. If somebody wrote a lineage
        without the key, return the checkpoint of the last lineage that has one. Raises LedgerForked
        for what is not a checkpoint.
        """
        known = await lineages(self.ledger)
        try:
            sound_lineages(known, self.keys, self.ledger.name)
            known = known[-1:]
        except Unsound:
            pass
        for one in reversed(known):
            if (found := await self._stored.newest(one.origin)) is not None:
                return found
        return None

    async def newest_published(self) -> Checkpoint | None:
        """Return the newest published checkpoint that binds the log; None without an archive.

        It was stored before it was published: a log that does not have it lost it. Raises
        ArchiveUnavailable, LedgerForked if the log does not know what was published, and Behind on
        a standby that does not have it, or does not know it, yet.
        """
        if not self.keys or not self.published.has_archive:
            return None
        may_be_behind = await is_standby(self.ledger)
        await self.check_archive()
        begun = await lineages(self.ledger)
        if may_be_behind and (unknown := await self.published.unknown_origins(begun)):
            size = await self.published.last(unknown[-1])
            raise Behind(self.ledger.name, size, await self._newest(begun, only_stored=True))
        begun = await self.published.known(begun)
        newest = await self._newest(begun)
        if may_be_behind and newest is not None:  # what is stored is read again, after the archive
            stored = await self._newest(begun, only_stored=True)
            ages = [one.origin for one in begun]
            first, last = [
                (ages.index(one.origin), one.size) if one else (-1, 0) for one in (stored, newest)
            ]
            if first < last:
                raise Behind(self.ledger.name, newest.size, stored)
        return newest

    async def _newest(
        self, begun: list[LineageBegun], *, only_stored: bool = False
    ) -> Checkpoint | None:
        for one in reversed(begun):
            stored = await self._stored.two_largest(one.origin)
            found = await self.published.newest(begun, one.origin, stored, only_stored=only_stored)
            if found is not None:
                return found
        return None

    async def full_note(self, note: str) -> str:
        """Return a stored note with what others have signed of it since; raises NoteInvalid."""
        return await full_note(self._database, note, self.keys, self.signers)

    async def stored(self, origin: str) -> dict[int, tuple[Checkpoint, str]]:
        """Return an origin's stored checkpoints and their notes, verified, by size in its order.

        No more are kept than we have signed: raises KeyMissing or LedgerForked at another one.
        """
        return {
            size: (self._stored.opened(origin, size, note), note)
            async for size, note in self._stored.notes(origin)
        }

    async def state(self) -> CheckpointState:
        """Return the checkpoints' health, whichever process makes them."""
        row = await self._database.reads.fetchrow(_SQL.state)
        forked, failures = row or (False, 0)
        return CheckpointState(forked, failures, *(await self._stored.present() or (None, None)))

    async def check_archive(self) -> None:
        """Raise ArchiveEmpty if checkpoints are stored and none of them was published.

        If the archive were a wrong one, or had been lost, it would be filled with checkpoints that
        nobody has compared with the published ones. Only the very first checkpoint may be stored
        without being published, by a process that could not publish it. That process has recorded
        this in the archive before, and no second checkpoint is stored until the first is published.
        """
        # Read before the archive, which another process may fill meanwhile.
        newest = await self._stored.newest_of_all() if self.published.has_archive else []
        # Asked first: the last is there unless a crash, or another archive, lies between, and then
        # the one before it is.
        for origin, size in newest:
            if await self.published.has(origin, size):
                return
        if not newest:
            return
        origin, _ = newest[0]
        # Of the stored one's origin first: which others there are, only our keys tell.
        if await self.published.sizes(origin) or not await self.published.is_empty():
            return
        if len(newest) > 1 or not await self.published.is_begun(origin):
            raise ArchiveEmpty(
                f"the archive holds no checkpoint of {self.ledger.name}, and the database has "
                "some: it is the wrong place, or what was published is lost"
            )

    async def restore_published(self, up_to: int) -> None:
        """Store the published checkpoints of the present lineage again, up to a size.

        A restore keeps events and can lose a checkpoint over them that was stored a moment later.
        Stops at the first one that is not of this log.
        """
        begun = await lineages(self.ledger)
        newest = await self._stored.newest(begun[-1].origin) if begun else None
        if not begun or (newest and newest[0].size >= up_to):
            return
        start, tree, leaf = newest[0].size if newest else 0, CompactRange(), b""
        for size in await self.published.sizes(begun[-1].origin, behind=start):
            there = await self.published.get(begun[-1].origin, size) if size <= up_to else None
            if there is None:
                return
            async for leaves in leaves_of_log(self._database, tree.size, size):
                tree, leaf = await extended(tree, leaves), leaves[-HASH_BYTES:]
            if tree.root() != there[0].root:
                return
            await self._stored.store(*there, tree, leaf, start)
            start = size

    async def _make(self, rest_seconds: float | None) -> MadeCheckpoint:
        key = self.signing_key()
        if rest_seconds is None:
            await self._sequencer.number_committed()
        if not await lineages(self.ledger):
            await self.published.known([])
            await begin_first(self.ledger, key, self.new_id)
            await self._sequencer.number_committed()
        goal = (await self._sequencer.lag()).size
        is_new = False
        while True:
            made = await self._step(key, goal, None if is_new else rest_seconds)
            if isinstance(made, Checkpoint):
                is_new = True
            elif made is not None:
                return made._replace(is_new=is_new)
            elif not await is_numbered(self.ledger):
                await self._sequencer.number_committed()

    async def _step(
        self, key: NoteKey, goal: int, rest_seconds: float | None
    ) -> MadeCheckpoint | Checkpoint | None:
        """Return the next new checkpoint, or the last one's state at the end; None: too late.

        The end is `goal`, where the log ended when the checkpoint was asked for: it may grow
        meanwhile. None means that another process stored or published one first, or that the
        event that begins the lineage waits for its number.
        """
        begun = await lineages(self.ledger)
        last = await self._stored.last(begun[-1].origin) if begun else None
        begun = await self.published.known(begun)
        origin = begun[-1].origin
        if last is None:
            await self.published.hold(begun)
            if not await is_numbered(self.ledger):
                return None
        ahead = await self._ahead(origin, last)
        if ahead is not None and ahead > (await self._sequencer.lag()).size:
            # A restore may keep what it covers, to before that was numbered.
            await self._sequencer.number_committed()
        tree = last.tree if last is not None else CompactRange()
        part = await read_part(self._database, tree.size, ahead)
        if ahead is not None and ahead > part.size:
            raise LedgerForked(
                f"a checkpoint of {counted(ahead, 'event')} was published, "
                f"the log has {part.size:,}"
            )
        grown = await extended(tree, part.leaves)
        part.check_head(grown)
        ends = part.end == tree.size or (tree.size >= goal and ahead is None)
        if last is not None and (ends or (ahead is None and self._rests(last, rest_seconds))):
            return MadeCheckpoint(last.checkpoint, last.note, False, self.published.has_archive)
        checkpoint = Checkpoint(origin, grown.size, grown.root())
        there = await self.published.get(origin, checkpoint.size)
        if there is not None and there[0] != checkpoint:
            raise LedgerForked(f"the first {checkpoint.size} events are not those published")
        await refuse_unbound(
            self._database, await self.ledger.binding(), tree.size, checkpoint.size
        )
        note = checkpoint.sign(key) if there is None else there[1]
        leaf = part.leaves[-HASH_BYTES:]
        if last is None:
            await self.published.begin(origin)
        if not await self._stored.store(checkpoint, note, grown, leaf, tree.size):
            return None
        if not await self.published.put(checkpoint, note, part.leaves, tree.size):
            return None
        return checkpoint

    def signing_key(self) -> NoteKey:
        """Return the key that signs; raises KeyMissing."""
        if not self.keys or not self.keys[0].can_sign:
            raise KeyMissing(
                "no key signs checkpoints: `claim-ledger audit keygen` prints one for "
                "CLAIM_LEDGER_CHECKPOINT_KEYS"
            )
        return self.keys[0]

    def _rests(self, last: StoredCheckpoint, rest_seconds: float | None) -> bool:
        """Return whether the last checkpoint is so recent that none is signed.

        A checkpoint that is dated ahead does not count as recent, because it would stay so until
        that date. Every process keeps its own interval by a monotonic clock, so a wrong date costs
        one additional checkpoint, never fewer.
        """
        if rest_seconds is None:
            return False
        age = self.ledger.clock() - last.made_at
        if age < -CLOCKS_DIFFER_MAX:
            log.error("checkpoint dated ahead", ledger=self.ledger.name)
            return False
        return age < timedelta(seconds=rest_seconds)

    async def _ahead(self, origin: str, last: StoredCheckpoint | None) -> int | None:
        """Return the size of the first published checkpoint beyond the last stored one, if any.

        Asked before the log is read: what another process signs meanwhile is in the log then.
        """
        if not self.published.has_archive:
            return None
        size = 0 if last is None else last.checkpoint.size
        if last is not None:
            there = await self.published.get(origin, size)
            if there is None:
                await self._publish_missing(origin)
            elif there[0] != last.checkpoint:
                raise LedgerForked(f"another checkpoint of {counted(size, 'event')} was published")
        return await self.published.following(origin, size)

    async def _publish_missing(self, origin: str) -> None:
        """Publish what was only stored: before a crash, or before there was an archive.

        Raises LedgerForked where another database has published something else meanwhile, and as
        `stored` for what we have not signed: what is published can never be taken back.
        """
        there, start = deque(await self.published.sizes(origin)), 0
        async for size, note in self._stored.notes(origin):
            while there and there[0] < size:
                start = there.popleft()
                await self.published.hold_to(origin, start)
            if there and there[0] == size:
                there.popleft()
            else:
                checkpoint = self._stored.opened(origin, size, note)
                await self._publish(checkpoint, note, start)
            start = size
        for beyond in there:
            await self.published.hold_to(origin, beyond)

    async def _publish(self, checkpoint: Checkpoint, note: str, start: int) -> None:
        parts = leaves_of_log(self._database, start, checkpoint.size)
        leaves = b"".join([part async for part in parts])
        if not await self.published.put(checkpoint, note, leaves, start):
            raise LedgerForked(
                f"nothing more can be published after the checkpoint of {counted(start, 'event')}: "
                "another database did, or `audit lineage` was about to begin another one"
            )
