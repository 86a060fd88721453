"""Names of a log's tiles (C2SP tlog-tiles), under its origin."""

import re
from typing import Final, NamedTuple

from service.evidence.tree.tile import WIDTH

CHECKPOINT: Final = "checkpoint"
_GROUP: Final = 1000
_PATH: Final = re.compile(
    r"tile/(?:entries|[0-9]|[1-5][0-9]|6[0-3])/(?:x[0-9]{3}/){0,6}[0-9]{3}"
    r"(?:\.p/(?:[1-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5]))?",
    re.ASCII,
)


class TilePlace(NamedTuple):
    """Where a tile stands: its level, its number in the level, and how many hashes it has."""

    level: int
    number: int
    width: int


def tile_name(origin: str, place: TilePlace) -> str:
    """Return the name of a tile."""
    return f"{origin}/tile/{place.level}/{_numbered(place)}"


def entries_name(origin: str, place: TilePlace) -> str:
    """Return the name of the bundle of entries whose leaves a tile of level 0 has."""
    return f"{origin}/tile/entries/{_numbered(place)}"


def checkpoint_name(origin: str) -> str:
    """Return the name of the one object that changes."""
    return f"{origin}/{CHECKPOINT}"


def is_tile(path: str) -> bool:
    """Return whether a path below an origin is that of a tile or of a bundle of entries."""
    return _PATH.fullmatch(path) is not None


def partial_places(size: int) -> list[TilePlace]:
    """Return where the unfinished tiles of a tree stand, one a level, from the leaves up."""
    found: list[TilePlace] = []
    level = 0
    while size:
        if size % WIDTH:
            found.append(TilePlace(level, size // WIDTH, size % WIDTH))
        level, size = level + 1, size // WIDTH
    return found


def _numbered(place: TilePlace) -> str:
    index, last = divmod(place.number, _GROUP)
    path = f"{last:03}"
    while index:
        index, group = divmod(index, _GROUP)
        path = f"x{group:03}/{path}"
    return path if place.width == WIDTH else f"{path}.p/{place.width}"
