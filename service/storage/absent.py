"""The null part where no bucket is set."""

from collections.abc import AsyncIterator, Mapping
from typing import NoReturn

from service.storage.port import SignedUpload, StorageUnavailable, StoredObject


class NoStorage:
    """No bucket is set: documents are unavailable, everything else works."""

    async def sign(self, _name: str, _mime_type: str, _max_bytes: int) -> SignedUpload:
        """Refuse."""
        _refuse()

    async def under(self, _prefix: str) -> Mapping[str, StoredObject]:
        """Refuse."""
        _refuse()

    async def each(self, _prefix: str) -> AsyncIterator[StoredObject]:
        """Refuse."""
        _refuse()
        yield  # pragma: no cover - makes this a generator

    async def delete(self, _name: str, _generation: int) -> bool:
        """Refuse."""
        _refuse()

    def close(self) -> None:
        """Nothing is held."""


def _refuse() -> NoReturn:
    raise StorageUnavailable("no bucket is set")
