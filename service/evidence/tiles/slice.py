"""The tiles that a log gains between two checkpoints, made in memory and verified."""

from collections.abc import AsyncIterable, Collection

from service.evidence.checkpoint import Checkpoint
from service.evidence.tiles.edge import TileEdge
from service.evidence.tiles.entries import EntriesUnsound, in_bundle
from service.evidence.tiles.names import (
    TilePlace,
    entries_name,
    partial_places,
    tile_name,
)
from service.evidence.tree.tile import HEIGHT, WIDTH
from service.ledger.merkle import leaf_hash


async def slice_of(
    records: AsyncIterable[bytes], edge: TileEdge, target: Checkpoint, between: Collection[int]
) -> dict[str, bytes]:
    """Return the objects that a log of `edge` lacks, by name, to have those of `target`.

    `records` are the log's, from where the edge's last bundle begins up to the target's size.
    `between` are the sizes of the checkpoints between both: partial tiles are made for these, too,
    unless `target` completes them. Raises EntriesUnsound if the log does not make its root.
    """
    made: dict[str, bytes] = {}
    begun, sizes = edge.size, {*between, target.size}
    there = partial_places(begun)
    bundle = bytearray()
    size = begun - begun % WIDTH
    async for record in records:
        size += 1
        bundle += in_bundle(record)
        if size > begun:
            for tile in edge.append(leaf_hash(record)):
                made[tile_name(target.origin, tile.place)] = tile.hashes
        if size > begun and size in sizes:
            for tile in edge.unfinished():
                place = tile.place
                if place in there or place.number < target.size >> HEIGHT * (place.level + 1):
                    continue  # it was written before, or the full one is made
                made[tile_name(target.origin, place)] = tile.hashes
                if place.level == 0:
                    made[entries_name(target.origin, place)] = bytes(bundle)
        if size % WIDTH == 0:
            place = TilePlace(0, size // WIDTH - 1, WIDTH)
            made[entries_name(target.origin, place)] = bytes(bundle)
            bundle.clear()
    if (edge.size, edge.root()) != (target.size, target.root):
        raise EntriesUnsound(f"the first {target.size} events are not those that were signed")
    return made
