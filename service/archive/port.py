"""The archive: objects outside the database, each name written once, but in an open one."""

from typing import Final, Protocol

OBJECT_BYTES_MAX: Final = 4 << 20
"""More than any object has whose reader does not say how many bytes it can have."""


class ArchiveUnavailable(Exception):
    """The archive cannot be reached, or refuses us. `str()` is for an operator."""


class ObjectTooLarge(ArchiveUnavailable):
    """An object has more bytes than anything that is published under such a name."""


class Archive(Protocol):
    """Objects whose names are paths with `/`, each written once: the archive may lock them.

    Every method raises ArchiveUnavailable, and ValueError for a name that is not such a path.
    """

    async def put(self, name: str, content: bytes) -> bool:
        """Write an object, whole or not at all; False: the name is taken, and its object stays."""
        ...

    async def get(self, name: str, bytes_max: int = OBJECT_BYTES_MAX) -> bytes | None:
        """Return an object's content; None: there is no such object.

        Raises ObjectTooLarge, having read little more than `bytes_max`, where it has more.
        """
        ...

    async def names(self, prefix: str, after: str = "") -> list[str]:
        """Return the names that begin with `prefix` and sort after `after`, sorted."""
        ...

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders directly under `prefix`, which ends in `/`, as full names, sorted.

        The cost grows with the folders, not with what is in them.
        """
        ...

    def close(self) -> None:
        """Release threads and connections; a later call opens new ones."""
        ...


class OpenArchive(Archive, Protocol):
    """An archive without a lock: an object can be replaced."""

    async def replace(self, name: str, content: bytes, known: bytes | None) -> bool:
        """Write a text over `known`, None: over nothing, whole or not at all; no cache may keep it.

        False: something else has the name, and stays, however long this call has stood still.
        Raises as the others; also where a lock protects what is there.
        """
        ...


def parts_of(name: str) -> list[str]:
    """Return the parts of an object's name; raises ValueError if one could lead elsewhere."""
    parts = name.split("/")
    if any(not part or part.startswith(".") or not part.isprintable() for part in parts):
        raise ValueError(f"{name!r} is no name to publish under")
    return parts
