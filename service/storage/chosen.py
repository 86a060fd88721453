"""Which storage each mode has, by the settings: the cloud's, the local store's, or none."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from service.settings import Settings
from service.storage.port import (
    ObjectStore,
    SignedUpload,
    StorageUnavailable,
    StoredObject,
    UploadSigner,
)

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


class Storage(NamedTuple):
    """One mode's bucket: who signs uploads to it, and who reads it."""

    signer: UploadSigner
    store: ObjectStore

    def close(self) -> None:
        """Let threads and connections go."""
        self.signer.close()
        self.store.close()


class NoStorage:
    """The null part where no bucket is set: documents are unavailable, everything else works."""

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


def storage_for(settings: Settings, bucket: str | None) -> Storage:
    """Answer a bucket's storage. The cloud's client is imported where there is a bucket alone."""
    if bucket is None:
        nothing = NoStorage()
        return Storage(nothing, nothing)
    if settings.storage_key_file is None:
        return _by_workload_identity(settings, bucket)
    key = json.loads(settings.storage_key_file.read_text())
    if settings.storage_endpoint is not None:
        return _local(settings.storage_endpoint, settings.storage_key_file, key, bucket)
    return _by_key(key, bucket)


class Deferred:
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


def deferred(choose: Callable[[], Storage]) -> Storage:
    """Answer a storage that is chosen at its first use; a fault of that is StorageUnavailable."""
    later = Deferred(choose)
    return Storage(later, later)


def _auth_error() -> type[Exception]:
    from google.auth.exceptions import GoogleAuthError

    return GoogleAuthError


def _by_key(key: dict[str, Any], bucket: str) -> Storage:
    from google.oauth2.service_account import Credentials

    from service.storage.google import GoogleObjectStore
    from service.storage.signer import KeySigner

    credentials = Credentials.from_service_account_info(key, scopes=[SCOPE])
    return Storage(KeySigner(key, bucket), GoogleObjectStore(credentials, bucket))


def _by_workload_identity(settings: Settings, bucket: str) -> Storage:
    import google.auth

    from service.storage.google import GoogleObjectStore
    from service.storage.signer import IamSigner

    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloud-platform"])
    email = settings.storage_service_account or getattr(credentials, "service_account_email", "")
    return Storage(IamSigner(credentials, email, bucket), GoogleObjectStore(credentials, bucket))


def _local(endpoint: str, key_file: Path, key: dict[str, Any], bucket: str) -> Storage:
    from google.oauth2.credentials import Credentials

    from service.storage.google import GoogleObjectStore
    from service.storage.local.credentials import TOKEN_FILE
    from service.storage.signer import KeySigner

    token = (key_file.parent / TOKEN_FILE).read_text().strip()
    store = GoogleObjectStore(Credentials(token), bucket, endpoint=endpoint)
    return Storage(KeySigner(key, bucket, endpoint=endpoint), store)


def _refuse() -> NoReturn:
    raise StorageUnavailable("no bucket is set")
