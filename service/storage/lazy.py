"""A storage that is chosen at its first use."""

from collections.abc import AsyncIterator, Callable, Mapping

from service.storage.port import SignedUpload, Storage, StorageUnavailable, StoredObject


class LazyStorage:
    """A storage that is chosen at its first use: what never uses it imports no client."""

    def __init__(self, choose: Callable[[], Storage]) -> None:
        """`choose` is called once, and again after it failed."""
        self._choose = choose
        self._chosen: Storage | None = None

    async def sign(self, name: str, mime_type: str, max_bytes: int) -> SignedUpload:
        """Sign with what is chosen."""
        return await self._storage.signer.sign(name, mime_type, max_bytes)

    async def under(self, prefix: str) -> Mapping[str, StoredObject]:
        """List with what is chosen."""
        return await self._storage.store.under(prefix)

    async def each(self, prefix: str) -> AsyncIterator[StoredObject]:
        """List with what is chosen."""
        async for one in self._storage.store.each(prefix):
            yield one

    async def delete(self, name: str, generation: int) -> bool:
        """Delete with what is chosen."""
        return await self._storage.store.delete(name, generation)

    def close(self) -> None:
        """Let go of what was chosen, if anything was."""
        chosen, self._chosen = self._chosen, None
        if chosen is not None:
            chosen.close()

    @property
    def _storage(self) -> Storage:
        if self._chosen is None:
            try:
                self._chosen = self._choose()
            except (OSError, ValueError, KeyError, _auth_error()) as error:
                raise StorageUnavailable(str(error)) from error
        return self._chosen


def lazy_storage(choose: Callable[[], Storage]) -> Storage:
    """Return a storage that is chosen at its first use; a fault of that is StorageUnavailable."""
    later = LazyStorage(choose)
    return Storage(later, later)


def _auth_error() -> type[Exception]:
    from google.auth.exceptions import GoogleAuthError

    return GoogleAuthError
