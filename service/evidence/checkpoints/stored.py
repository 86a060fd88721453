"""The checkpoints in a ledger's own database, each with its tree."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import begun_lineages, read_lineages
from service.evidence.checkpoints.log_tree import LedgerForked, tree_of_log
from service.evidence.note import NoteInvalid, NoteKey, SignerUnknown
from service.facts.lineages import lineage_stream
from service.ledger.database import Row
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange
from service.ledger.sql import queries

STORE_SECONDS_MAX: Final = 30.0
NOTES_MAX = 256
"""Read at once: at most 1 MiB."""

_SQL = queries("service.evidence.checkpoints")


class KeyMissing(Exception):
    """No key signs here, or the last checkpoint's key is not in the ring; `str()` says which."""


class StoredCheckpoint(NamedTuple):
    """A checkpoint in the database, with the tree that it was made of."""

    checkpoint: Checkpoint
    note: str
    tree: CompactRange
    made_at: datetime


class StoredCheckpoints:
    """Reads and writes the table `checkpoints` of one ledger, which only grows."""

    def __init__(self, ledger: Ledger, keys: Sequence[NoteKey]) -> None:
        """`keys` are those whose notes are trusted."""
        self._ledger = ledger
        self._keys = keys

    async def notes(self, origin: str) -> AsyncGenerator[tuple[int, str]]:
        """Yield the sizes of an origin's checkpoints, in ascending order, with their notes.

        Whoever has the ledger's login stores any number: they come a page at a time, and `opened`
        tells which are ours.
        """
        after = -1
        while rows := await self._ledger.database.background.fetch(
            _SQL.notes, origin, after, NOTES_MAX
        ):
            for row in rows:
                yield row["size"], row["note"]
            after = rows[-1]["size"]

    def opened(self, origin: str, size: int, note: str) -> Checkpoint:
        """Return a checkpoint, verified; raises KeyMissing and LedgerForked, as `last` does."""
        return self._opened(origin, size, note, f"stored checkpoint of {counted(size, 'event')}")

    async def newest(self, origin: str) -> tuple[Checkpoint, str] | None:
        """Return the largest checkpoint of an origin and its note.

        No signature is verified. Raises LedgerForked for what is no checkpoint.
        """
        row = await self._ledger.database.background.fetchrow(_SQL.last, origin)
        return None if row is None else (_parsed(row), row["note"])

    async def two_largest(self, origin: str) -> list[int]:
        """Return the sizes of an origin's last two checkpoints, largest first; not verified.

        Of ours, only the last may not be published yet.
        """
        rows = await self._ledger.database.background.fetch(_SQL.two_largest, origin)
        return [row["size"] for row in rows]

    async def newest_of_all(self) -> list[tuple[str, int]]:
        """Return origin and size of the two that were made last, newest first; not verified."""
        rows = await self._ledger.database.background.fetch(_SQL.newest)
        return [(row["origin"], row["size"]) for row in rows]

    async def present(self) -> tuple[int, datetime] | None:
        """Return size and date of the newest lineage's largest checkpoint; nothing is verified.

        The largest size decides, because dates come from clocks that may have been wrong. An
        altered event of a lineage is ignored: this serves status reports, which have to work in any
        case.
        """
        for one in reversed(await begun_lineages(self._ledger)):
            row = await self._ledger.database.reads.fetchrow(_SQL.last, one.origin)
            if row is not None:
                return row["size"], row["made_at"]
        return None

    async def last(self, origin: str) -> StoredCheckpoint | None:
        """Return the largest checkpoint of an origin, verified.

        Raises KeyMissing if no known key signed it, LedgerForked if it does not hold.
        """
        row = await self._ledger.database.background.fetchrow(_SQL.last, origin)
        if row is None:
            return None
        # Nothing could ever be stored after that of another size: signing would begin again.
        checkpoint = self._opened(origin, row["size"], row["note"], "last checkpoint")
        return StoredCheckpoint(
            checkpoint, row["note"], await self._tree(checkpoint, row["tree"]), row["made_at"]
        )

    async def store(
        self,
        checkpoint: Checkpoint,
        note: str,
        tree: CompactRange,
        leaf: bytes,
        start: int,
    ) -> bool:
        """Store what follows the checkpoint of size `start`, and wait for the synchronous replica.

        Return False, and store nothing, if another checkpoint came first, another lineage has
        begun, or the log does not have `leaf` as the checkpoint's last leaf.
        """
        async with self._ledger.transaction(background=STORE_SECONDS_MAX) as transaction:
            await transaction.lock(lineage_stream(self._ledger.name))
            known = await read_lineages(transaction, self._ledger)
            if not known or known[-1].origin != checkpoint.origin:
                return False
            row = await transaction.fetchrow(
                _SQL.store,
                checkpoint.origin,
                checkpoint.size,
                start,
                note,
                tree.to_bytes(),
                self._ledger.clock(),
                leaf,
            )
        return row is not None

    def _opened(self, origin: str, size: int, note: str, what: str) -> Checkpoint:
        try:
            checkpoint = Checkpoint.open(note, self._keys)
        except SignerUnknown as error:
            raise KeyMissing(
                f"the {what}'s key was replaced: its public key belongs at the end of "
                "CLAIM_LEDGER_CHECKPOINT_KEYS"
            ) from error
        except NoteInvalid as error:
            raise LedgerForked(f"the {what} in the database was altered: {error}") from error
        if (checkpoint.origin, checkpoint.size) != (origin, size):
            raise LedgerForked(f"the {what} in the database holds the note of another one")
        return checkpoint

    async def _tree(self, checkpoint: Checkpoint, kept: bytes | None) -> CompactRange:
        """Return the tree of a signed root: the stored one if it has it, or else the log's."""
        try:
            tree = CompactRange.from_bytes(checkpoint.size, kept or b"")
        except ValueError:
            tree = CompactRange()
        if tree.root() != checkpoint.root:
            tree = await tree_of_log(self._ledger.database, checkpoint.size)
        if tree.root() != checkpoint.root:
            raise LedgerForked(f"the first {checkpoint.size} events are not those that were signed")
        return tree


def _parsed(row: Row) -> Checkpoint:
    try:
        return Checkpoint.of_note(row["note"])
    except NoteInvalid as error:
        message = f"the stored checkpoint of {counted(row['size'], 'event')} was altered: {error}"
        raise LedgerForked(message) from error
