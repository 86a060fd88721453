"""The published checkpoints of a ledger, and the comparison of the log's lineages with them.

The `.leaves` of a checkpoint are the leaf hashes, 32 bytes each, from the checkpoint before it in
its origin (from the first event for an origin's first one) up to its own size. The `.next` of a
checkpoint is the note of the one after it. It is written once, and writing it publishes that
checkpoint. If two processes use different databases after a failover, only one of them can
therefore continue an origin. It also leads from checkpoint to checkpoint, so the newest one is
found without a list of all of them.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from service.archive.port import Archive, ArchiveUnavailable, ObjectTooLarge
from service.core.counted import counted
from service.evidence.authorisation import Unsound, sound_lineages
from service.evidence.checkpoint import NOTE_BYTES_MAX, Checkpoint
from service.evidence.checkpoints.lineage import known_origins, lineages
from service.evidence.checkpoints.log_tree import LedgerForked, tree_of_log
from service.evidence.checkpoints.names import (
    BEGUN,
    CLOSED,
    TOP,
    begun_name,
    leaves_name,
    link_name,
    note_name,
    parsed,
)
from service.evidence.lineages import Lineages
from service.evidence.note import NoteInvalid, NoteKey, SignerUnknown
from service.facts.lineages import LineageBegun
from service.ledger.ledger import Ledger
from service.ledger.merkle import HASH_BYTES


class ArchiveEmpty(ArchiveUnavailable):
    """The archive is available, but has nothing of a ledger that has published before."""


class _Link(NamedTuple):
    """What is known about the checkpoint that follows another one."""

    is_there: bool
    is_closed: bool = False
    to: Checkpoint | None = None


class PublishedHistory:
    """The published checkpoints of a ledger, which the next one may not contradict."""

    def __init__(self, ledger: Ledger, keys: Sequence[NoteKey], archive: Archive | None) -> None:
        """`keys` are those whose lineages and notes are trusted.

        Without an `archive`, nothing is published, and nothing is found.
        """
        self.has_archive = archive is not None
        self._ledger = ledger
        self._keys = keys
        self._archive = archive
        self._homes = {f"{key.name}/{ledger.name}" for key in keys}
        self._seen: dict[str, int] = {}

    async def begin(self, origin: str) -> None:
        """Record that an origin's first checkpoint is about to be stored; see `is_begun`."""
        if self._archive is not None:
            await self._archive.put(begun_name(origin), BEGUN)

    async def is_begun(self, origin: str) -> bool:
        """Return whether the archive was there when an origin's first checkpoint was stored.

        So it is not another one, and what is missing there may not have been published yet.
        """
        return await self._read(begun_name(origin)) is not None

    async def put(self, checkpoint: Checkpoint, note: str, leaves: bytes, after: int) -> bool:
        """Publish a checkpoint after that of size `after`; return False if another one follows it.

        In that case, it was not published: another database, or a new lineage, came first. Its
        leaves are written before it, so that whoever finds the checkpoint also finds its leaves.
        """
        if self._archive is None:
            return True
        origin, size, _ = checkpoint
        await self._archive.put(leaves_name(origin, size), leaves)
        if not await self._archive.put(link_name(origin, after), note.encode()):
            link = await self._linked(origin, after)
            if link.is_closed or link.to not in (None, checkpoint):
                return False
        await self._archive.put(note_name(origin, size), note.encode())
        return True

    async def put_beside(self, name: str, content: bytes) -> bytes | None:
        """Publish what belongs to a checkpoint; return what has its name already, if anything."""
        if self._archive is None or await self._archive.put(name, content):
            return None
        return await self._archive.get(name, NOTE_BYTES_MAX)

    async def close(self, origin: str, size: int) -> bool:
        """Close an origin: nothing can be published of it after the checkpoint of a size.

        Return False if something was.
        """
        if self._archive is None or await self._archive.put(link_name(origin, size), CLOSED):
            return True
        return (await self._linked(origin, size)).to is None

    async def is_closed(self, origin: str, size: int) -> bool:
        """Return whether nothing can be published of an origin after the checkpoint of a size."""
        return (await self._linked(origin, size)).is_closed

    async def get(self, origin: str, size: int) -> tuple[Checkpoint, str] | None:
        """Return a checkpoint and its note; raises ArchiveUnavailable if it is not ours."""
        name = note_name(origin, size)
        raw = await self._read(name)
        if raw is None:
            return None
        checkpoint = self._opened(name, raw)
        if (checkpoint.origin, checkpoint.size) != (origin, size):
            raise ArchiveUnavailable(f"{name}: holds another checkpoint")
        return checkpoint, raw.decode()

    async def has(self, origin: str, size: int) -> bool:
        """Return whether an object has the name of a checkpoint's note."""
        with suppress(ValueError):
            try:
                return await self._read(note_name(origin, size)) is not None
            except ObjectTooLarge:
                return True
        return False

    async def leaves(self, origin: str, size: int) -> bytes | None:
        """Return the leaf hashes up to a checkpoint, as they were published."""
        return await self._read(leaves_name(origin, size), size * HASH_BYTES)

    async def sizes(self, origin: str, behind: int = 0) -> list[int]:
        """Return the sizes of an origin's checkpoints beyond a size, smallest first."""
        if self._archive is None:
            return []
        names = await self._archive.names(f"{TOP}{origin}/", after=note_name(origin, behind))
        return [size for at, size in filter(None, map(parsed, names)) if at == origin]

    async def following(self, origin: str, size: int) -> int | None:
        """Return the size of the checkpoint after that of `size`, which is published or 0, if any.

        A link holds it. The origin is listed, which can be long, where a link may be missing: once
        at the end of the links, because an earlier version published without them or with links
        that are only sizes, again where something is known to lie beyond, and where one is closed.
        """
        link = await self._linked(origin, size)
        if link.to is not None:
            return link.to.size
        if not link.is_there and size >= self._seen.get(origin, size + 1):
            self._seen[origin] = size
            return None
        found = await self.sizes(origin, behind=size)
        self._seen[origin] = max(size, self._seen.get(origin, 0), *found)
        return found[0] if found else None

    async def known(self, begun: list[LineageBegun]) -> list[LineageBegun]:
        """Return the lineages, `begun` as they were read, once the log knows all that is published.

        Raises LedgerForked if one of them was begun by none of our keys or outside their names, or
        if checkpoints were published under an origin that the log does not know.
        """
        unknown = await self.unknown_origins(begun)
        if unknown:  # another process may have begun it a moment ago
            begun = await lineages(self._ledger)
            unknown = [origin for origin in unknown if origin not in known_origins(begun)]
        if unknown:
            sizes = await self.sizes(unknown[-1])
            raise LedgerForked(
                f"a checkpoint of {counted(sizes[-1], 'event')} was published under {unknown[-1]}, "
                "and the log knows nothing of it"
            )
        self._check(begun)
        return begun

    async def unknown_origins(self, begun: Sequence[LineageBegun]) -> list[str]:
        """Return the origins of published checkpoints that no lineage names, oldest first."""
        known = known_origins(begun)
        found = [origin for origin in await self._origins() if origin not in known]
        return [origin for origin in found if await self.last(origin)]

    async def last(self, origin: str) -> int:
        """Return the size of an origin's last checkpoint that is published or linked; 0: none."""
        size = max(await self.sizes(origin), default=0)
        while (following := (await self._linked(origin, size)).to) is not None:
            size = following.size
        return size

    async def newest(
        self,
        begun: Sequence[LineageBegun],
        origin: str,
        stored: Sequence[int],
        *,
        only_stored: bool = False,
    ) -> Checkpoint | None:
        """Return the newest published checkpoint of an origin that binds the log, if there is one.

        What comes before one that is also `stored` (sizes, largest first) is not listed; with
        `only_stored`, nor is what follows it.
        """
        found, behind = self._check(begun), 0
        for size in stored:
            if not found.sets_aside(origin, size) and await self.has(origin, size):
                behind = size
                break
        there = [behind, *([] if only_stored else await self.sizes(origin, behind=behind))]
        binding = [size for size in there if size and not found.sets_aside(origin, size)]
        published = await self.get(origin, binding[-1]) if binding else None
        return None if published is None else published[0]

    async def is_empty(self) -> bool:
        """Return whether no checkpoint of this ledger was published, of whichever lineage."""
        return not any([await self.sizes(origin) for origin in await self._origins()])

    async def hold(self, begun: Sequence[LineageBegun]) -> None:
        """Compare the log with what was published under earlier lineages; raises LedgerForked.

        For a lineage that has no checkpoint yet: what comes later continues its first one.
        """
        found = self._check(begun)
        for origin in known_origins(begun) - {begun[-1].origin}:
            sizes = await self.sizes(origin)
            binding = [size for size in sizes if not found.sets_aside(origin, size)]
            if binding:
                await self.hold_to(origin, binding[-1])

    async def hold_to(self, origin: str, size: int) -> None:
        """Compare the log with one published checkpoint; raises LedgerForked."""
        published = await self.get(origin, size)
        tree = await tree_of_log(self._ledger.database, size)
        if published is None or published[0].root != tree.root():
            raise LedgerForked(f"the first {size} events are not those published")

    async def _origins(self) -> list[str]:
        """Return the origins of this ledger, oldest first: the ids of lineages sort by age."""
        archive, tops = self._archive, [f"{TOP}{home}/" for home in self._homes]
        found = [] if archive is None else [await archive.folders(top) for top in tops]
        origins = [name.removeprefix(TOP) for names in found for name in names]
        return sorted(origins, key=lambda origin: origin.rpartition("/")[2])

    async def _linked(self, origin: str, size: int) -> _Link:
        """Return the link after a size; its note is published now where a crash prevented that."""
        name = link_name(origin, size)
        link = await self._read(name)
        if link is None or link == CLOSED or self._archive is None:
            return _Link(is_there=link is not None, is_closed=link == CLOSED)
        if link.strip().isdigit():  # an earlier version's, which may lead to nothing
            found = await self.get(origin, int(link)) if int(link) > size else None
            return _Link(is_there=True, to=None if found is None else found[0])
        checkpoint = self._opened(name, link)
        if checkpoint.origin != origin or checkpoint.size <= size:
            raise ArchiveUnavailable(f"{name}: leads to another checkpoint")
        if not await self.has(origin, checkpoint.size):
            await self._archive.put(note_name(origin, checkpoint.size), link)
        return _Link(is_there=True, to=checkpoint)

    def _opened(self, name: str, raw: bytes) -> Checkpoint:
        try:
            return Checkpoint.open(raw.decode(), self._keys)
        except SignerUnknown as error:
            raise ArchiveUnavailable(
                f"{name}: {error}; if the key was replaced, its public key belongs at the end of "
                "CLAIM_LEDGER_CHECKPOINT_KEYS"
            ) from error
        except (NoteInvalid, UnicodeDecodeError) as error:
            raise ArchiveUnavailable(f"{name}: is empty, cut short or altered: {error}") from error

    async def _read(self, name: str, bytes_max: int = NOTE_BYTES_MAX) -> bytes | None:
        return None if self._archive is None else await self._archive.get(name, bytes_max)

    def _check(self, begun: Sequence[LineageBegun]) -> Lineages:
        try:
            found = sound_lineages(begun, self._keys, self._ledger.name)
        except Unsound as error:
            why = "somebody else than this service began it"
            if isinstance(error.__cause__, SignerUnknown):
                why += ", or its public key belongs at the end of CLAIM_LEDGER_CHECKPOINT_KEYS"
            raise LedgerForked(f"a lineage of the log is not sound: {error}; {why}") from error
        for lineage in found:
            if lineage.origin.rpartition("/")[0] not in self._homes:
                raise LedgerForked(f"the lineage {lineage.origin} is outside what our keys sign")
        return Lineages(found)
