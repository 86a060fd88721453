"""Finding where a log diverges from what was published, and continuing it as a new lineage.

After a restore or a failover that lost events, the log can never again be consistent with its last
published checkpoint. A new lineage records this in the log itself: it contains that checkpoint in
full, and the number of events that the log still shares with it.
"""

from bisect import bisect_right
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.checkpoints.lineage import lineages, new_origin
from service.evidence.checkpoints.log_tree import extended, read_part
from service.evidence.checkpoints.signing import Checkpoints, MadeCheckpoint
from service.evidence.note import NoteKey
from service.facts.lineages import lineage_stream
from service.ledger.events import Cause
from service.ledger.following.status import read_only
from service.ledger.limits import BACKGROUND_SECONDS
from service.ledger.merkle import HASH_BYTES, CompactRange, split_hashes
from service.ledger.sequencer import Sequencer
from service.ledger.sql import queries
from service.ledger.transaction import AppendConflict
from service.ledger.writing import Append

_SQL = queries("service.evidence.checkpoints")


class LineageRefused(Exception):
    """No lineage was begun; `str()` says why, for an operator."""


class Divergence(NamedTuple):
    """The last published checkpoint and its note, and how many events the log shares with it.

    `size` is the log's own, and `leaf` is that of its last event, in the database that was
    compared. Nothing is lost if `shared_size` is the checkpoint's size. `is_over`: no checkpoint
    can follow in its origin, because the log does not name the origin, or because it was closed.
    """

    checkpoint: Checkpoint
    note: str
    shared_size: int
    size: int
    leaf: bytes
    is_over: bool

    @property
    def is_forked(self) -> bool:
        """Whether the log cannot go on with the checkpoint's origin."""
        return self.is_over or self.shared_size < self.checkpoint.size


class _Past(NamedTuple):
    """The checkpoints of one origin: their sizes in ascending order, and how to read one.

    `leaves` reads the published hashes up to a checkpoint; None: these are not the published
    checkpoints.
    """

    sizes: list[int]
    open: Callable[[int], Awaitable[tuple[Checkpoint, str] | None]]
    leaves: Callable[[int], Awaitable[bytes | None]] | None = None
    is_over: bool = False


async def find_divergence(checkpoints: Checkpoints) -> Divergence | None:
    """Compare the log with the last checkpoint of its past; None: there never was one.

    Reads the whole log once, and from the archive what a bisection needs. Raises LedgerForked if
    the log contradicts itself, which no new lineage mends, and ArchiveUnavailable, also if the
    archive is empty: what is stored cannot alone reveal a loss.
    """
    await checkpoints.check_archive()
    past = await _published(checkpoints) or await _stored(checkpoints)
    if past is None:
        return None
    found = await past.open(past.sizes[-1])
    if found is None:
        raise LineageRefused("a checkpoint was there a moment ago and is gone")
    trees, size, leaf = await _trees(checkpoints, past.sizes)
    shared = await _shared(checkpoints, past, trees)
    return Divergence(*found, shared, size, leaf, past.is_over)


async def begin_lineage(
    checkpoints: Checkpoints, reason: str, cause: Cause, *, force: bool
) -> MadeCheckpoint:
    """Begin a new lineage and make its first checkpoint.

    Forced where nothing was lost, it is begun once: if the present one was begun for the same
    reason, that one's newest checkpoint is returned. Raises LineageRefused if nothing was lost,
    unless forced, if there is no past at all, and where PostgreSQL takes no writes.
    """
    key = checkpoints.signing_key()
    if (refused := await read_only(checkpoints.ledger)) is not None:  # before anything is published
        raise LineageRefused(f"no lineage is begun: {refused}")
    await Sequencer(checkpoints.ledger).number_committed()
    divergence = await find_divergence(checkpoints)
    present = (await lineages(checkpoints.ledger) or [None])[-1]
    is_forked = divergence is not None and divergence.is_forked
    if force and not is_forked and present is not None and present.reason == reason:
        return await checkpoints.make()
    if divergence is None:
        raise LineageRefused("there is no checkpoint yet: `audit checkpoint` makes the first one")
    if not (divergence.is_forked or force):
        raise LineageRefused(
            f"nothing is lost: the log holds all {divergence.checkpoint.size} events of its last "
            "checkpoint; --force begins a lineage all the same"
        )
    if not force and divergence.size >= divergence.checkpoint.size:
        await _refuse_altered(checkpoints)
    await checkpoints.restore_published(divergence.shared_size)
    await _begin(checkpoints, key, divergence, reason, cause)
    # Lineages can have been lost one after the other: the log names each of them.
    while (other := await find_divergence(checkpoints)) is not None and other.is_forked:
        await _begin(checkpoints, key, other, reason, cause)
    return await checkpoints.make()


async def _begin(
    checkpoints: Checkpoints, key: NoteKey, divergence: Divergence, reason: str, cause: Cause
) -> None:
    ledger, stream = checkpoints.ledger, lineage_stream(checkpoints.ledger.name)
    known, followed = await lineages(ledger), divergence.checkpoint
    published = checkpoints.published
    # What is published after the one that is named would bind the log to events that it has lost.
    last = await published.last(followed.origin)
    if last > followed.size or not await published.close(followed.origin, last):
        raise LineageRefused("another checkpoint was published meanwhile: repeat the command")
    origin = new_origin(ledger, key, checkpoints.new_id)
    begun = authorised(key, origin, reason, divergence.note, divergence.shared_size)
    try:
        async with ledger.transaction(background=BACKGROUND_SECONDS) as transaction:
            # The lock of storing a checkpoint: so none is stored under the old origin later.
            await transaction.lock(stream)
            compared = await transaction.fetch(_SQL.leaf, divergence.size, divergence.leaf)
            if divergence.size and not compared:
                raise LineageRefused("another database took over meanwhile: repeat the command")
            await transaction.append(Append(stream, len(known), [begun], cause))
    except AppendConflict as error:
        raise LineageRefused("another one was begun at the same moment") from error


async def _refuse_altered(checkpoints: Checkpoints) -> None:
    """Raise LineageRefused if the stored checkpoints are not of these events.

    A restore brings both back as of one moment: otherwise events were altered, not lost.
    """
    stored = await _stored(checkpoints)
    if stored is None:
        return
    trees, _, _ = await _trees(checkpoints, stored.sizes)
    for size in stored.sizes:
        found = await stored.open(size)
        held = CompactRange.from_bytes(size, trees[size]).root() if size in trees else None
        if found is not None and found[0].root != held:
            raise LineageRefused(
                f"altered, not lost: see `audit verify`. The log has {size} events, and they are "
                "not those of the checkpoint in its own database"
            )


async def _published(checkpoints: Checkpoints) -> _Past | None:
    """Return the newest published past, including lineages that the log does not know."""
    published, known = checkpoints.published, await lineages(checkpoints.ledger)
    unknown = await published.unknown_origins(known)
    origin = unknown[-1] if unknown else known[-1].origin if known else ""
    if not origin or not (last := await published.last(origin)):
        return None
    return _Past(
        await published.sizes(origin),
        partial(published.get, origin),
        partial(published.leaves, origin),
        is_over=bool(unknown) or await published.is_closed(origin, last),
    )


async def _stored(checkpoints: Checkpoints) -> _Past | None:
    """Return the present lineage's checkpoints as the database has them."""
    known = await lineages(checkpoints.ledger)
    origin = known[-1].origin if known else ""
    stored = await checkpoints.stored(origin)

    async def opened(size: int) -> tuple[Checkpoint, str]:
        return stored[size]

    return _Past([*stored], opened) if stored else None


async def _trees(checkpoints: Checkpoints, sizes: list[int]) -> tuple[dict[int, bytes], int, bytes]:
    """Return the log's tree at each of these sizes that it has, its size, and its last leaf."""
    tree, trees, leaf = CompactRange(), {0: b""}, b""
    while True:
        start = tree.size
        part = await read_part(checkpoints.ledger.database, start, None)
        if part.end == start:
            part.check_head(tree)
            return trees, start, leaf
        leaf = part.leaves[-HASH_BYTES:]
        within = sizes[bisect_right(sizes, start) : bisect_right(sizes, part.end)]
        for size in [*within, part.end]:
            piece = part.leaves[(tree.size - start) * HASH_BYTES : (size - start) * HASH_BYTES]
            tree = await extended(tree, piece)
            trees[size] = tree.to_bytes()


async def _shared(checkpoints: Checkpoints, past: _Past, trees: dict[int, bytes]) -> int:
    """Return how many first events the log shares with its past.

    Up to the largest checkpoint that is consistent, and beyond it as far as the published leaf
    hashes agree. If a prefix of the log is the past's, every smaller one is: hence the bisection.
    """
    sizes = [size for size in past.sizes if size in trees]
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        found = await past.open(sizes[middle])
        tree = CompactRange.from_bytes(sizes[middle], trees[sizes[middle]])
        if found is not None and found[0].root == tree.root():
            low = middle + 1
        else:
            high = middle
    shared = sizes[low - 1] if low else 0
    following = bisect_right(past.sizes, shared)
    if following == len(past.sizes):
        return shared
    tree = CompactRange.from_bytes(shared, trees[shared])
    return shared + await _agreeing(checkpoints, past, tree, past.sizes[following])


async def _agreeing(checkpoints: Checkpoints, past: _Past, tree: CompactRange, size: int) -> int:
    """Return how many leaves after a tree agree with those published up to `size`."""
    found = await past.open(size)  # and only then what its size lets be large
    leaves = await past.leaves(size) if past.leaves and found else None
    if leaves is None or found is None or len(leaves) != (size - tree.size) * HASH_BYTES:
        return 0
    if (await extended(tree, leaves)).root() != found[0].root:
        return 0  # not what was signed: nobody can tell any more
    published, start = split_hashes(leaves), tree.size
    while (part := await read_part(checkpoints.ledger.database, start, size)).end > start:
        both = zip(published[start - tree.size :], split_hashes(part.leaves), strict=False)
        for at, (one, other) in enumerate(both, start):
            if one != other:
                return at - tree.size
        start = part.end
    return start - tree.size
