"""The documents of the JSON API, in the cloud's shapes."""

import base64
from typing import Any
from urllib.parse import quote

import msgspec

from service.cli.dev.gcs.disk import DiskObject
from service.cli.dev.gcs.http import Answer


def document(value: dict[str, Any], status: int = 200) -> Answer:
    """Return a JSON response."""
    headers = [("content-type", "application/json; charset=UTF-8")]
    return Answer(status, headers, msgspec.json.encode(value))


class JsonError(Exception):
    """A request of the JSON API fails with this status, reason and message."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message

    @property
    def answer(self) -> Answer:
        """The response that reports the error."""
        detail = {"message": self.message, "domain": "global", "reason": self.reason}
        error = {"code": self.status, "message": self.message, "errors": [detail]}
        return document({"error": error}, status=self.status)


def bucket_resource(origin: str, bucket: str) -> dict[str, Any]:
    """Return a bucket's document."""
    return {
        "kind": "storage#bucket",
        "id": bucket,
        "name": bucket,
        "selfLink": f"{origin}/storage/v1/b/{bucket}",
        "projectNumber": "0",
        "metageneration": "1",
        "location": "LOCAL",
        "storageClass": "STANDARD",
        "etag": "CAE=",
    }


def object_resource(origin: str, stored: DiskObject) -> dict[str, Any]:
    """Return an object's document."""
    path = f"b/{stored.bucket}/o/{quote(stored.name, safe='')}"
    media = f"{origin}/download/storage/v1/{path}?generation={stored.generation}&alt=media"
    return {
        "kind": "storage#object",
        "id": f"{stored.bucket}/{stored.name}/{stored.generation}",
        "selfLink": f"{origin}/storage/v1/{path}",
        "mediaLink": media,
        "name": stored.name,
        "bucket": stored.bucket,
        "generation": str(stored.generation),
        "metageneration": "1",
        "contentType": stored.content_type,
        "storageClass": "STANDARD",
        "size": str(stored.size),
        "md5Hash": stored.md5,
        "crc32c": stored.crc32c,
        "etag": base64.b64encode(str(stored.generation).encode()).decode(),
        "timeCreated": stored.time_created,
        "updated": stored.time_created,
        "timeStorageClassUpdated": stored.time_created,
        "timeFinalized": stored.time_created,
    }


def media_headers(
    stored: DiskObject, first: int = 0, last: int | None = None
) -> list[tuple[str, str]]:
    """Return the headers that go with an object's bytes, all or those of a range."""
    span = [] if last is None else [("content-range", f"bytes {first}-{last}/{stored.size}")]
    return [
        *span,
        ("content-type", stored.content_type),
        ("content-length", str(stored.size if last is None else last - first + 1)),
        ("x-goog-generation", str(stored.generation)),
        ("x-goog-metageneration", "1"),
        ("x-goog-hash", f"crc32c={stored.crc32c},md5={stored.md5}"),
        ("x-goog-storage-class", "STANDARD"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
    ]
