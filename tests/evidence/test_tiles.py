"""Tiles: their names, and what they are made of."""

from hashlib import sha256

import pytest

from service.evidence.tiles.edge import TileEdge
from service.evidence.tiles.names import TilePlace, entries_name, is_tile, partial_places, tile_name
from service.ledger.merkle import CompactRange


def test_names_are_those_of_the_specification():
    """Its examples: index 1234067, and what a tree of 70,000 and one of 256 leaves have."""
    assert tile_name("o", TilePlace(0, 1234067, 256)) == "o/tile/0/x001/x234/067"
    assert entries_name("o", TilePlace(0, 273, 112)) == "o/tile/entries/273.p/112"
    assert tile_name("o", TilePlace(1, 0, 256)) == "o/tile/1/000"
    assert partial_places(70_000) == [
        TilePlace(0, 273, 112),
        TilePlace(1, 1, 17),
        TilePlace(2, 0, 1),
    ]
    assert partial_places(256) == [TilePlace(1, 0, 1)]
    assert partial_places(0) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tile/0/000", True),
        ("tile/63/x001/x234/067.p/255", True),
        ("tile/entries/999.p/1", True),
        ("tile/64/000", False),
        ("tile/00/000", False),
        ("tile/0/0", False),
        ("tile/0/x001", False),
        ("tile/0/000.p/0", False),
        ("tile/0/000.p/01", False),
        ("tile/0/000.p/256", False),
        ("tile/0/000/", False),
        ("tile/0/../../mail", False),
        ("tile/0/\u0660\u0660\u0660", False),
        ("checkpoint", False),
    ],
)
def test_other_paths_are_no_tiles(path, expected):
    """Nothing but a tile's path leads to an object."""
    assert is_tile(path) is expected


def test_every_tile_can_be_made_from_the_edge():
    """For sizes around the bounds of tiles: full and partial tiles lead to the tree's root."""
    edge, tree, full = TileEdge(), CompactRange(), {}
    asked = {0, 1, 2, 255, 256, 257, 511, 65_535, 65_536, 65_537, 65_900}
    for size in range(65_901):
        if size in asked or size % 977 == 0:
            assert edge.root() == tree.root()
            tiles = {tile.place: tile.hashes for tile in edge.unfinished()}
            again = TileEdge(size, tiles)
            assert again.root() == tree.root()
            edge = again
        leaf = sha256(size.to_bytes(4)).digest()
        full |= {tile.place: tile.hashes for tile in edge.append(leaf)}
        tree.append(leaf)
    assert [place for place in full if place.level] == [TilePlace(1, 0, 256)]
    assert len(full) == 257 + 1
    assert all(len(hashes) == 8192 for hashes in full.values())
    with pytest.raises(ValueError, match="does not have"):
        TileEdge(3, {TilePlace(0, 0, 3): bytes(32)})
