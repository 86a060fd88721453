"""Which archive the settings choose: a directory, a bucket, or none."""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from service.app.settings import Settings
from service.app.storage import storage_for
from service.archive.directory import DirectoryArchive
from service.archive.port import Archive, ArchiveUnavailable

if TYPE_CHECKING:
    from service.storage.google import GoogleObjectStore


def archive_for(settings: Settings) -> Archive | None:
    """Return the archive that the settings name; None: there is none."""
    if settings.archive_url is None:
        return None
    url = urlsplit(settings.archive_url)
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
