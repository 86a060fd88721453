"""Writing a ledger's tiles after its checkpoints are published (decision 54).

The tiles follow from the log, and are verified before they are written: they make a signed root.
The object `checkpoint` is replaced last, so it shows up to where everything is there, and an
interrupted writer continues from it. Neither signing nor publishing waits for the tiles.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import structlog

from service.archive.port import ArchiveUnavailable, ObjectTooLarge, OpenArchive
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.note import NoteInvalid
from service.evidence.tiles.edge import TileEdge
from service.evidence.tiles.entries import EntriesUnsound, entries
from service.evidence.tiles.names import checkpoint_name, partial_places, tile_name
from service.evidence.tiles.slice import slice_of
from service.evidence.tree.tile import WIDTH
from service.ledger.database import Database
from service.ledger.merkle import HASH_BYTES
from service.ledger.sql import queries

LOOK_SECONDS: Final = 10.0
"""Between two looks whether there is a newer checkpoint."""
AGAIN_SECONDS: Final = 600.0
"""How often to check that the last written object is still there: somebody may have restored or
removed it."""
EVENTS_MAX: Final = 65_536
"""Whose tiles are made at once, about 14 MB: unless two checkpoints are further apart (they are at
most three times as far), and then of these alone."""
SIZES_MAX: Final = 4_096
"""Checkpoints that are passed at once."""
AT_ONCE: Final = 8
"""Objects that are written at once."""

_SQL = queries("service.evidence.tiles")

log = structlog.get_logger()


class TilesState(NamedTuple):
    """The number of events in the tiles, None before any were written, and whether all is sound."""

    size: int | None
    unsound: bool


async def tiles_state(database: Database) -> TilesState:
    """Return how far a ledger's tiles are, whichever process writes them."""
    row = await database.reads.fetchrow(_SQL.state)
    return TilesState(None, False) if row is None else TilesState(*row)


class TilesWriter:
    """Writes the tiles of a ledger's present lineage. Several writers write the same bytes."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        place: OpenArchive,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`place` has the tiles; `monotonic` is a clock that only this process reads."""
        self._checkpoints = checkpoints
        self._ledger = checkpoints.ledger
        self._place = place
        self._monotonic = monotonic
        self._next_at = monotonic()
        self._written = ""
        self._again_at = self._next_at

    async def step(self) -> int | None:
        """Write what one later checkpoint adds; return 1 if there was one; None: it is not time."""
        now = self._monotonic()
        if now < self._next_at:
            return None
        try:
            if await self.write():
                return 1
        except ArchiveUnavailable:
            log.warning("tiles unavailable", ledger=self._ledger.name)
        except EntriesUnsound:
            log.error("tiles unsound", ledger=self._ledger.name)  # noqa: TRY400 - no fault of code
        self._next_at = now + LOOK_SECONDS
        return 0

    async def write(self) -> bool:
        """Write what one later checkpoint adds, and then the checkpoint; False: there is none.

        Raises ArchiveUnavailable, and EntriesUnsound if the log, or what is written, does not hold.
        """
        try:
            return await self._write()
        except EntriesUnsound:
            await self._ledger.database.background.fetch(_SQL.unsound)
            raise

    async def _write(self) -> bool:
        begun = await lineages(self._ledger)
        newest = await self._newest(begun[-1].origin) if begun else None
        now = self._monotonic()
        if newest is None or (newest[1] == self._written and now < self._again_at):
            return False
        origin, (size, note) = begun[-1].origin, newest
        there, text = await self._there(origin)
        if there is not None and there.size >= size:
            if there.size == size and text != note:  # others have signed it since
                if not self._holds(note, there):
                    raise EntriesUnsound(f"the stored note of {size} events does not hold")
                if not await self._replace(origin, note, text):
                    return True
            await self._tell(there.size)
            self._written, self._again_at = note, now + AGAIN_SECONDS
            return False
        found = await self._next(origin, there)
        if found is None:
            return False
        target, published, between = found
        edge = await self._edge(origin, there)
        records = entries(self._ledger.database, edge.size - edge.size % WIDTH, target.size)
        await self._put(await slice_of(records, edge, target, between))
        latest, text = await self._there(origin)
        if latest is None or latest.size < target.size:  # else another came first
            newer = note if self._holds(note, target) else published
            if await self._replace(origin, newer, text):
                await self._tell(target.size)
        return True

    async def _replace(self, origin: str, text: str, known: str) -> bool:
        """Replace the checkpoint unless another writer did since `known` was read."""
        name = checkpoint_name(origin)
        return await self._place.replace(name, text.encode(), known.encode() or None)

    def _holds(self, note: str, checkpoint: Checkpoint) -> bool:
        """Return whether a stored note is a checkpoint's, signed by our keys.

        One that is not would keep every reader from the log, and the next writer, too.
        """
        try:
            return Checkpoint.open(note, self._checkpoints.keys) == checkpoint
        except NoteInvalid:
            return False

    async def _tell(self, size: int) -> None:
        await self._ledger.database.background.fetch(_SQL.progress, size)

    async def _newest(self, origin: str) -> tuple[int, str] | None:
        """Return size and note of an origin's largest checkpoint; our signature is not verified.

        The note has what others have signed of it so far.
        """
        row = await self._ledger.database.background.fetchrow(_SQL.newest, origin)
        if row is None:
            return None
        try:
            return row["size"], await self._checkpoints.full_note(row["note"])
        except NoteInvalid as error:
            raise EntriesUnsound(f"the note of {row['size']} events: {error}") from error

    async def _next(
        self, origin: str, there: Checkpoint | None
    ) -> tuple[Checkpoint, str, list[int]] | None:
        """Return the published checkpoint to go on to, its note, and the sizes passed by."""
        start = there.size if there is not None else 0
        rows = await self._ledger.database.background.fetch(_SQL.sizes, origin, start, SIZES_MAX)
        sizes: list[int] = [row["size"] for row in rows]
        sizes = [size for size in sizes if size <= start + EVENTS_MAX] or sizes[:1]
        while sizes:
            published = await self._checkpoints.published.get(origin, sizes[-1])
            if published is not None:
                return *published, sizes[:-1]
            sizes.pop()  # it is on its way, or another database's came first
        return None

    async def _there(self, origin: str) -> tuple[Checkpoint | None, str]:
        """Return the checkpoint up to which everything is written, verified, and its note.

        None: nothing is.
        """
        raw = await self._place.get(checkpoint_name(origin))
        if raw is None:
            return None, ""
        try:
            text = raw.decode()
            found = Checkpoint.open(text, self._checkpoints.keys)
        except (NoteInvalid, UnicodeDecodeError) as error:
            raise EntriesUnsound(f"{checkpoint_name(origin)}: {error}") from error
        if found.origin != origin:
            raise EntriesUnsound(f"{checkpoint_name(origin)}: is of another log")
        return found, text

    async def _edge(self, origin: str, there: Checkpoint | None) -> TileEdge:
        """Return the right edge as it is written, which makes the root of its checkpoint."""
        if there is None:
            return TileEdge()
        names = {place: tile_name(origin, place) for place in partial_places(there.size)}
        found = {place: await self._place.get(name) for place, name in names.items()}
        faults = [
            f"{names[place]} {'is missing' if tile is None else f'has {len(tile)} bytes'}"
            for place, tile in found.items()
            if tile is None or len(tile) != place.width * HASH_BYTES
        ]
        if faults:
            raise EntriesUnsound("; ".join(faults))
        edge = TileEdge(there.size, {place: tile or b"" for place, tile in found.items()})
        if edge.root() != there.root:
            raise EntriesUnsound(f"{origin}: the tiles do not make the root of the checkpoint")
        return edge

    async def _put(self, made: dict[str, bytes]) -> None:
        names, others = sorted(made), list[str]()
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            are_there = await asyncio.gather(*(self._put_one(name, made[name]) for name in some))
            others += [name for name, is_there in zip(some, are_there, strict=True) if not is_there]
        if others:
            raise EntriesUnsound("; ".join(f"{name}: holds something else" for name in others))

    async def _put_one(self, name: str, content: bytes) -> bool:
        """Return whether an object has these contents, perhaps from a writer that was cut off."""
        if await self._place.put(name, content):
            return True
        try:
            return await self._place.get(name, len(content)) == content
        except ObjectTooLarge:
            return False
