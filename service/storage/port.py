"""What documents need from object storage; the cloud and the local store both provide it."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol


class StorageUnavailable(Exception):
    """The store gave no usable response in time: unreachable, refusing us, or without its bucket.

    Never a partner's mistake: it becomes a 503 and an alarm, not a 400.
    """


class NoBucket(StorageUnavailable):
    """The settings name no bucket, so that this process has no store to ask."""


class ShareFull(StorageUnavailable):
    """The caller's own calls held all that one caller may have at once: no fault of the store."""


class SignedUpload(NamedTuple):
    """A URL that takes one PUT, and the headers to send with it exactly."""

    url: str
    expires_at: datetime
    required_headers: Mapping[str, str]


class StoredObject(NamedTuple):
    """An object as the store has it. `generation` and `crc32c` (base64) change with its bytes."""

    name: str
    size: int
    content_type: str
    generation: int
    crc32c: str


class UploadSigner(Protocol):
    """Mints URLs for uploads to one bucket."""

    async def sign(
        self, name: str, mime_type: str, max_bytes: int, owner: str = "", /
    ) -> SignedUpload:
        """Return a V4 signed URL for a PUT, valid for 15 minutes. Raises StorageUnavailable.

        Of network calls, few are made for one `owner` at once; raises ShareFull where those leave
        no place in time.
        """
        ...

    def close(self) -> None:
        """End threads and connections."""
        ...


class ObjectStore(Protocol):
    """Reads and sweeps one bucket. Every failure is StorageUnavailable."""

    async def under(self, prefix: str, owner: str = "", /) -> Mapping[str, StoredObject]:
        """Return all objects under a prefix, by name, within one deadline.

        Listings of one `owner` are few at once, so that nobody's hold up all others'. Raises
        ShareFull where those leave no place in time.
        """
        ...

    def each(self, prefix: str, /) -> AsyncIterator[StoredObject]:
        """Return all objects under a prefix, a page at a time: for audits and sweeps."""
        ...

    async def part(self, name: str, generation: int, start: int, size: int, /) -> bytes | None:
        """Return at most `size` bytes of one generation of an object; None where it is gone."""
        ...

    async def delete(self, name: str, generation: int, /) -> bool:
        """Delete an object unless it has changed; return whether it is gone."""
        ...

    def close(self) -> None:
        """End threads and connections."""
        ...


class Storage(NamedTuple):
    """One mode's bucket: the signer of its uploads, and its store."""

    signer: UploadSigner
    store: ObjectStore

    def close(self) -> None:
        """End threads and connections."""
        self.signer.close()
        self.store.close()
