"""An archive in a cloud bucket, through the object store's client and its deadlines."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.archive.port import OBJECT_BYTES_MAX, ArchiveUnavailable, ObjectTooLarge, parts_of
from service.storage.error_text import error_text
from service.storage.google import GoogleObjectStore
from service.storage.port import StorageUnavailable

_T = TypeVar("_T")


class BucketArchive:
    """A bucket, or a prefix of it. The bucket's retention policy protects the objects."""

    def __init__(
        self, choose: Callable[[], GoogleObjectStore], bucket: str, prefix: str = ""
    ) -> None:
        """`choose` returns the store of `bucket` at first use; `prefix` has no outer slashes."""
        self._choose = choose
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._store: GoogleObjectStore | None = None

    async def put(self, name: str, content: bytes) -> bool:
        """Upload on the condition that the name is free."""
        full = self._full(name)
        return await self._ask(lambda store: store.put_new(full, content))

    async def replace(self, name: str, content: bytes, known: bytes | None) -> bool:
        """Upload over one generation: a retention policy of the bucket refuses it."""
        full = self._full(name)
        return await self._ask(lambda store: store.replace(full, content, known))

    async def get(self, name: str, bytes_max: int = OBJECT_BYTES_MAX) -> bytes | None:
        """Download an object, until it has too many bytes."""
        full = self._full(name)
        content = await self._ask(lambda store: store.read(full, bytes_max))
        if content is not None and len(content) > bytes_max:
            where = f"gs://{self._bucket}/{full}"
            raise ObjectTooLarge(f"{where}: has more than {bytes_max:,} bytes")
        return content

    async def names(self, prefix: str, after: str = "") -> list[str]:
        """List the names that begin with a prefix, from `after` on."""
        start = self._prefix + after if after else None
        found = await self._ask(lambda store: store.names(self._prefix + prefix, start))
        names = (name.removeprefix(self._prefix) for name in found)
        return sorted(name for name in names if name > after)

    async def folders(self, prefix: str) -> list[str]:
        """List by the delimiter, so that what is deeper is not listed."""
        found = await self._ask(lambda store: store.folders(self._prefix + prefix))
        return sorted(name.removeprefix(self._prefix).removesuffix("/") for name in found)

    def close(self) -> None:
        """Release threads and connections."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _full(self, name: str) -> str:
        return self._prefix + "/".join(parts_of(name))

    async def _ask(self, call: Callable[[GoogleObjectStore], Awaitable[_T]]) -> _T:
        try:
            if self._store is None:
                self._store = self._choose()
            return await call(self._store)
        except StorageUnavailable as error:
            raise ArchiveUnavailable(f"gs://{self._bucket}: {error_text(error)}") from error
