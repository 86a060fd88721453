"""Which storage each mode has and which archive there is, by the settings.

A mode's storage is the cloud's, the local store's or none; the archive is a directory, a bucket or
none.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from service.app.settings import Settings
from service.archive.directory import DirectoryArchive
from service.archive.port import Archive, ArchiveUnavailable, OpenArchive
from service.facts.caller import Mode
from service.storage.lazy import lazy_storage
from service.storage.port import NoBucket, Storage

if TYPE_CHECKING:
    from service.storage.google import GoogleObjectStore

SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
TOKEN_FILE: Final = "json-api-token"  # noqa: S105 - a file's name
"""Where the local store keeps its JSON side's token, beside the account's key."""


def storage_of_mode(settings: Settings, mode: Mode) -> Storage:
    """Return the storage of a mode's bucket."""
    return storage_for(settings, settings.live_bucket if mode == "live" else settings.test_bucket)


def storage_for(settings: Settings, bucket: str | None) -> Storage:
    """Return a bucket's storage, and call nobody for it.

    The cloud's client is imported where there is a bucket alone.
    """
    if bucket is None:
        return lazy_storage(_no_bucket)
    if settings.storage_key_file is None:
        return _by_workload_identity(settings, bucket)
    return _by_key(settings.storage_key_file, settings.storage_endpoint, bucket)


def _no_bucket() -> Storage:
    raise NoBucket("no bucket is set")


def _by_key(key_file: Path, endpoint: str | None, bucket: str) -> Storage:
    """Return the storage of the cloud, or of the local store at the `endpoint`."""
    from google.oauth2 import credentials, service_account

    from service.storage.google import GoogleObjectStore
    from service.storage.signer import KeySigner

    key: dict[str, Any] = json.loads(key_file.read_text())
    if endpoint is None:
        account = service_account.Credentials.from_service_account_info(key, scopes=[SCOPE])
        return Storage(KeySigner(key, bucket), GoogleObjectStore(account, bucket))
    token = credentials.Credentials((key_file.parent / TOKEN_FILE).read_text().strip())
    store = GoogleObjectStore(token, bucket, endpoint=endpoint)
    return Storage(KeySigner(key, bucket, endpoint=endpoint), store)


def _by_workload_identity(settings: Settings, bucket: str) -> Storage:
    from service.storage.google import GoogleObjectStore
    from service.storage.identity import WorkloadIdentity
    from service.storage.signer import IamSigner

    identity = WorkloadIdentity()
    signer = IamSigner(identity, settings.storage_service_account, bucket)
    return Storage(signer, GoogleObjectStore(identity, bucket))


def archive_for(settings: Settings) -> Archive | None:
    """Return the archive that the settings name; None: there is none."""
    return None if settings.archive_url is None else _archive_at(settings, settings.archive_url)


def tiles_for(settings: Settings) -> OpenArchive | None:
    """Return the place of the logs' tiles that the settings name; None: there is none."""
    return None if settings.tiles_url is None else _archive_at(settings, settings.tiles_url)


def _archive_at(settings: Settings, address: str) -> OpenArchive:
    url = urlsplit(address)
    if url.scheme == "file":
        return DirectoryArchive(Path(unquote(url.path)))
    # The cloud's client is slow to import: only where a bucket is chosen.
    from service.archive.bucket import BucketArchive

    bucket, prefix = url.netloc, unquote(url.path).strip("/")
    return BucketArchive(lambda: _bucket_store(settings, bucket), bucket, prefix)


def _bucket_store(settings: Settings, bucket: str) -> "GoogleObjectStore":
    """Return the bucket's store, with the credentials that documents have."""
    from google.auth.exceptions import GoogleAuthError

    from service.storage.google import GoogleObjectStore

    try:
        storage = storage_for(settings, bucket)
    except (OSError, ValueError, KeyError, GoogleAuthError) as error:
        raise ArchiveUnavailable(f"gs://{bucket}: no credentials: {error}") from error
    storage.signer.close()  # nothing is signed here
    assert isinstance(storage.store, GoogleObjectStore)  # noqa: S101 - there is a bucket
    return storage.store
