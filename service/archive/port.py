"""The archive: objects outside the database, each name written once."""

from typing import Protocol


class ArchiveUnavailable(Exception):
    """The place cannot be reached, or refuses us. `str()` is for an operator."""


class Archive(Protocol):
    """Objects whose names are paths with `/`, each written once: the place may lock them.

    Every method raises ArchiveUnavailable, and ValueError for a name that is no such path.
    """

    async def put(self, name: str, content: bytes) -> bool:
        """Keep an object, whole or not at all; False: there was one of that name, which stays."""
        ...

    async def get(self, name: str) -> bytes | None:
        """Return an object's content; None: there is none."""
        ...

    async def names(self, prefix: str, after: str = "") -> list[str]:
        """Return the names that begin with `prefix` and sort behind `after`, sorted."""
        ...

    async def folders(self, prefix: str) -> list[str]:
        """Return what names have from `prefix`, which ends in `/`, up to the next `/`, sorted.

        It costs what there are folders, however much lies in them.
        """
        ...

    def close(self) -> None:
        """Let threads and connections go; a later call takes up new ones."""
        ...


def parts_of(name: str) -> list[str]:
    """Return the parts of an object's name; raises ValueError where one could lead elsewhere."""
    parts = name.split("/")
    if any(not part or part.startswith(".") or not part.isprintable() for part in parts):
        raise ValueError(f"{name!r} is no name to publish under")
    return parts
