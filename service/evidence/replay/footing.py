"""What evidence an answer from the log has: each event's leaf, and a signed checkpoint.

If somebody alters an event in place, its hash in the log no longer matches. If they alter that
hash, too, the tree has a root that nobody signed.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from service.evidence.checkpoint import Checkpoint
from service.evidence.lineages import Lineages, lineages_of
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.replay.log_fault import LogFault
from service.evidence.rolled_back import snapshot_of
from service.ledger.database import Connection
from service.ledger.ledger import Ledger
from service.ledger.merkle import CompactRange, leaf_of
from service.ledger.sql import queries

SECONDS_MAX: Final = 3600.0
HASHES_MAX: Final = 20_000
"""Read at once."""

_SQL = queries("service.evidence.replay")
_LEAF_HASHES = queries("service.ledger").leaf_hashes

Leaves = Mapping[int, bytes | None]
"""By position, the hash of each event that was used; None where its columns cannot be hashed."""


class Footing(NamedTuple):
    """The evidence for an answer.

    `checkpoint` covers the events that were used, except for `unsigned` of them, which came after
    it. It is None if no checkpoint covers any of them, or if no public key is known.
    """

    checkpoint: Checkpoint | None
    unsigned: int

    @property
    def size(self) -> int:
        """How many events the checkpoint covers; 0 without one."""
        return 0 if self.checkpoint is None else self.checkpoint.size

    def shown(self) -> dict[str, object]:
        """Return it as the commands show it."""
        origin = self.checkpoint and self.checkpoint.origin
        size = self.checkpoint and self.checkpoint.size
        return {"origin": origin, "size": size, "unsigned_events": self.unsigned}


class BindingCheckpoints:
    """A ledger's checkpoints that bind its log, by size; each is opened when it is needed."""

    def __init__(
        self,
        connection: Connection,
        ledger: str,
        keys: Sequence[NoteKey],
        published: Checkpoint | None = None,
    ) -> None:
        """Read in the caller's transaction, which sees one snapshot.

        `published` was found before it began: the newest one that whoever has the database cannot
        remove.
        """
        self._connection = connection
        self._ledger = ledger
        self._keys = keys
        self._published = published
        self._places: list[tuple[int, str]] = []

    async def read(self) -> None:
        """Find out which checkpoints there are; without keys there are none.

        Raises LogFault for a checkpoint that we signed and that is of no lineage of the log:
        altering the event that begins a lineage must not make its events look unsigned. Nor must
        removing what was signed of them: the newest published one has to be there.
        """
        if not self._keys:
            return
        lineages = await lineages_of(self._connection, self._ledger, self._keys)
        rows = await self._connection.fetch(_SQL.signed_sizes.on(self._ledger))
        places = [(row["size"], row["origin"]) for row in rows if row["size"]]
        self._places = [(size, origin) for size, origin in places if binds(lineages, origin, size)]
        for size, origin in places:
            if lineages.reach(origin) is None and await self._is_signed(size, origin):
                raise LogFault(size, "its stored checkpoint is of a lineage that the log has lost")
        await self._hold_to_published()

    async def _hold_to_published(self) -> None:
        if self._published is None:
            return
        origin, size, _ = self._published
        found = await self._opened((size, origin)) if (size, origin) in self._places else None
        if found is None:
            raise LogFault(size, "a checkpoint was published there, and the database has lost it")
        if found[0] != self._published:
            raise LogFault(size, "its stored checkpoint is not the one that was published")

    async def cover(self, position: int) -> tuple[Checkpoint, CompactRange | None] | None:
        """Return the smallest checkpoint that counts a position, with its tree."""
        return await self._opened(next((one for one in self._places if one[0] >= position), None))

    async def before(self, position: int) -> CompactRange:
        """Return the tree of the largest checkpoint before a position, which has its root.

        Where the database has another one beside it, the empty tree, from which all follows.
        """
        earlier = [one for one in self._places if one[0] < position]
        found = await self._opened(earlier[-1] if earlier else None)
        return CompactRange() if found is None or found[1] is None else found[1]

    async def last(self) -> Checkpoint | None:
        """Return the largest checkpoint."""
        found = await self._opened(self._places[-1] if self._places else None)
        return None if found is None else found[0]

    async def note(self, checkpoint: Checkpoint) -> str | None:
        """Return the note of one of them, as it is stored."""
        query = _SQL.signed.on(self._ledger)
        row = await self._connection.fetchrow(query, checkpoint.size, checkpoint.origin)
        return None if row is None else row["note"]

    async def _is_signed(self, size: int, origin: str) -> bool:
        row = await self._connection.fetchrow(_SQL.signed.on(self._ledger), size, origin)
        try:
            return row is not None and bool(Checkpoint.open(row["note"], self._keys))
        except NoteInvalid:
            return False

    async def _opened(
        self, place: tuple[int, str] | None
    ) -> tuple[Checkpoint, CompactRange | None] | None:
        """Open a note, and its tree if that has the root; raises LogFault for an altered one."""
        if place is None:
            return None
        size, origin = place
        row = await self._connection.fetchrow(_SQL.signed.on(self._ledger), size, origin)
        try:
            checkpoint = Checkpoint.open("" if row is None else row["note"], self._keys)
        except NoteInvalid as error:
            raise LogFault(size, f"its stored checkpoint is not sound: {error}") from error
        if (checkpoint.size, checkpoint.origin) != place:
            raise LogFault(size, "its stored checkpoint holds the note of another one")
        try:
            tree = CompactRange.from_bytes(size, (row and row["tree"]) or b"")
        except ValueError:
            tree = None
        return checkpoint, tree if tree and tree.root() == checkpoint.root else None


def binds(lineages: Lineages, origin: str, size: int) -> bool:
    """Return whether a checkpoint binds the log, as far as its lineages say."""
    return lineages.reach(origin) is not None and not lineages.sets_aside(origin, size)


class Ascent:
    """A tree that grows by a log's leaves up to a checkpoint, where it must have the root."""

    def __init__(self, goal: Checkpoint | None, tree: CompactRange) -> None:
        """Without a goal, nothing is compared."""
        self._goal = goal
        self._tree = tree
        self._first = tree.size + 1

    @property
    def goal_size(self) -> int:
        """How many events the checkpoint covers; 0 without one."""
        return 0 if self._goal is None else self._goal.size

    @property
    def is_there(self) -> bool:
        """Whether the checkpoint was reached."""
        return self._goal is None or self._tree.size == self._goal.size

    def take(self, leaves: Sequence[bytes]) -> None:
        """Take the next leaves; raises LogFault where they lead to another root."""
        if self._goal is None or self.is_there:
            return
        self._tree.extend(leaves[: self._goal.size - self._tree.size])
        if self.is_there and self._tree.root() != self._goal.root:
            last = self._goal.size
            raise LogFault(self._first, f"up to {last}, the events are not those that were signed")

    async def rest(
        self, connection: Connection, ledger: str, used: Leaves, after: int | None = None
    ) -> None:
        """Take the leaves from a position on up to the checkpoint, those of `used` compared."""
        if self._goal is not None and not self.is_there:
            at = self._tree.size if after is None else after
            await self._climb(connection, ledger, used, at, self._goal.size)

    async def climb(self, connection: Connection, ledger: str, used: Leaves, until: int) -> None:
        """Take the leaves that follow, up to a position that the checkpoint covers."""
        await self._climb(connection, ledger, used, self._tree.size, until)

    async def _climb(
        self, connection: Connection, ledger: str, used: Leaves, at: int, until: int
    ) -> None:
        while at < until:
            end = min(at + HASHES_MAX, until)
            leaves = await _leaves(connection, ledger, at, end)
            for number, leaf in enumerate(leaves, at + 1):
                check_leaf(number, leaf, used.get(number, leaf))
            self.take(leaves)
            at = end


async def footing(
    ledger: Ledger, keys: Sequence[NoteKey], used: Leaves, published: Checkpoint | None = None
) -> Footing:
    """Return what the events at these positions rest on.

    Each is proved by the checkpoints around it, so that the log is read between those alone.
    `published` is that of `BindingCheckpoints`. Raises LogFault for an event that is not what was
    hashed, or signed, and where the newest published checkpoint is not stored.
    """
    async with snapshot_of(ledger.database, SECONDS_MAX) as connection:
        signed = BindingCheckpoints(connection, ledger.name, keys, published)
        await signed.read()
        left, newest = sorted(used), None
        while left and (found := await signed.cover(left[0])) is not None:
            newest, _ = found
            ascent = Ascent(newest, await signed.before(left[0]))
            await ascent.rest(connection, ledger.name, used)
            left = [position for position in left if position > newest.size]
        rows = await connection.fetch(_SQL.leaves_at.on(ledger.name), left)
        hashes = {row["position"]: row["leaf_hash"] for row in rows}
        for position in left:
            check_leaf(position, hashes.get(position), used[position])
        return Footing(newest, len(left))


async def stream_footing(
    ledger: Ledger, keys: Sequence[NoteKey], stream: UUID, published: Checkpoint | None = None
) -> Footing:
    """Return the evidence for the numbered events of a stream, as `footing`; raises LogFault."""
    rows = await ledger.database.background.fetch(_SQL.stream_leaves, stream)
    used = {row["position"]: leaf_of(*row) for row in rows}
    return await footing(ledger, keys, used, published)


def check_leaf(position: int, logged: bytes | None, used: bytes | None) -> None:
    """Raise LogFault unless an event that was used is the one that was hashed at a position."""
    if logged is None or logged != used:
        raise LogFault(position, "the event is not the one that was hashed there")


async def _leaves(connection: Connection, ledger: str, start: int, end: int) -> list[bytes]:
    rows = await connection.fetch(_LEAF_HASHES.on(ledger), start, end)
    if len(rows) != end - start:
        raise LogFault(start + 1, f"positions are missing up to {end}")
    return [row["leaf_hash"] for row in rows]
