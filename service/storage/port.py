"""What documents need of an object store; the cloud's client and the local store both serve it."""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol


class StorageUnavailable(Exception):
    """The store did not answer usefully in time: away, refusing us, or without its bucket.

    Never what a partner did wrong: it becomes a 503 and an alarm, not a 400.
    """


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

    async def sign(self, name: str, mime_type: str, max_bytes: int, /) -> SignedUpload:
        """Return a V4 signed URL for a PUT, valid for 15 minutes; raises StorageUnavailable."""
        ...

    def close(self) -> None:
        """Let threads and connections go."""
        ...


class ObjectStore(Protocol):
    """Reads one bucket."""

    async def under(self, prefix: str, /) -> Mapping[str, StoredObject]:
        """Return all objects under a prefix, by name, under one deadline.

        Raises:
            StorageUnavailable: for every reason that is not the object's absence.

        """
        ...

    def each(self, prefix: str, /) -> AsyncIterator[StoredObject]:
        """Return all objects under a prefix, a page at a time: for audits and sweeps."""
        ...

    async def delete(self, name: str, generation: int, /) -> bool:
        """Remove an object unless it has changed; answer whether it is gone."""
        ...

    def close(self) -> None:
        """Let threads and connections go."""
        ...


class Storage(NamedTuple):
    """One mode's bucket: who signs uploads to it, and who reads it."""

    signer: UploadSigner
    store: ObjectStore

    def close(self) -> None:
        """Let threads and connections go."""
        self.signer.close()
        self.store.close()
