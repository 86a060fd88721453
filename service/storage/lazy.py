"""A storage that is chosen at its first use."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from service.storage.port import SignedUpload, Storage, StorageUnavailable, StoredObject


def lazy_storage(choose: Callable[[], Storage]) -> Storage:
    """Return a storage that `choose` is called for at its first use, and again after it failed.

    A failure to choose is StorageUnavailable at every use.
    """
    lazy = LazyStorage(choose)
    return Storage(lazy, lazy)


@dataclass
class LazyStorage:
    """Signer and store in one; a process that never uses them imports no client."""

    choose: Callable[[], Storage]
    chosen: Storage | None = None

    async def sign(
        self, name: str, mime_type: str, max_bytes: int, owner: str = ""
    ) -> SignedUpload:
        """Sign with the chosen signer."""
        return await self._storage.signer.sign(name, mime_type, max_bytes, owner)

    async def under(self, prefix: str, owner: str = "") -> Mapping[str, StoredObject]:
        """List the chosen store."""
        return await self._storage.store.under(prefix, owner)

    async def each(self, prefix: str) -> AsyncIterator[StoredObject]:
        """List the chosen store, a page at a time."""
        async for stored in self._storage.store.each(prefix):
            yield stored

    async def part(self, name: str, generation: int, start: int, size: int) -> bytes | None:
        """Read from the chosen store."""
        return await self._storage.store.part(name, generation, start, size)

    async def delete(self, name: str, generation: int) -> bool:
        """Delete from the chosen store."""
        return await self._storage.store.delete(name, generation)

    def close(self) -> None:
        """Close what was chosen, if anything was."""
        chosen, self.chosen = self.chosen, None
        if chosen is not None:
            chosen.close()

    @property
    def _storage(self) -> Storage:
        if self.chosen is None:
            from google.auth.exceptions import GoogleAuthError

            try:
                self.chosen = self.choose()
            except StorageUnavailable:
                raise
            except (OSError, ValueError, KeyError, GoogleAuthError) as error:
                raise StorageUnavailable(str(error)) from error
        return self.chosen
