"""The JSON API: what the client library reads and deletes, for the holder of the token."""

import asyncio
import base64
import binascii
import re
import secrets
from collections.abc import Collection, Mapping
from functools import partial
from typing import Final
from urllib.parse import parse_qsl, unquote, unquote_to_bytes

from service.cli.dev.gcs import resources
from service.cli.dev.gcs.canonical import values_of
from service.cli.dev.gcs.disk import DiskObject, DiskStore
from service.cli.dev.gcs.http import Answer
from service.cli.dev.gcs.resources import JsonError, document
from service.cli.dev.gcs.verifier import Request

_PATH: Final = re.compile(
    r"(?P<media>/download)?/storage/v1/b/(?P<bucket>[^/]+)"
    r"(?:/(?P<list>o)|/o/(?P<name>[^/]+)|/(?P<iam>iam/testPermissions))?"
)
_HARMLESS: Final = frozenset({"fields", "prettyPrint", "projection"})
_LIST: Final = _HARMLESS | {"prefix", "pageToken", "maxResults"}
_OBJECT: Final = _HARMLESS | {"alt", "generation", "ifGenerationMatch"}
_RANGE: Final = re.compile(r"bytes=([0-9]{1,19})-([0-9]{1,19})")
_WHOLE: Final = re.compile(r"[0-9]{1,19}")
# The client library writes queries as forms: unlike in the XML API, a `+` is a space.
_pairs: Final = partial(parse_qsl, keep_blank_values=True)
PAGE_MAX: Final = 1000
"""The cloud's limit of a page."""
_NOT_MET: Final = "At least one of the pre-conditions you specified did not hold."
GRANTED: Final = (
    "storage.buckets.get",
    "storage.objects.delete",
    "storage.objects.get",
    "storage.objects.list",
)
"""What the holder of the token may do."""


class JsonSide:
    """Serves bucket, object, list and media requests."""

    def __init__(self, store: DiskStore, token: str) -> None:
        self._store = store
        self._expected = f"Bearer {token}".encode()

    async def answer(self, request: Request) -> Answer:
        """Return the response to a request, whose body is ignored."""
        try:
            return await self._answer(request)
        except JsonError as error:
            return error.answer

    async def _answer(self, request: Request) -> Answer:
        self._authenticate(request)
        path = _PATH.fullmatch(request.raw_path)
        if path is None:
            raise JsonError(404, "notFound", "Not Found")
        bucket = unquote(path["bucket"])
        if not self._store.has_bucket(bucket):
            raise JsonError(404, "notFound", "The specified bucket does not exist.")
        origin = f"http://{''.join(values_of(request.headers, 'host'))}"
        if path["name"] is not None:
            name = unquote_to_bytes(path["name"]).decode(errors="replace")
            return await self._object(request, origin, bucket, name, media=bool(path["media"]))
        _allow(request.method, {"GET"} if not path["media"] else set())
        if path["list"] is not None:
            return self._list(request, origin, bucket)
        if path["iam"] is not None:
            return _permissions(request)
        return document(resources.bucket_resource(origin, bucket))

    def _authenticate(self, request: Request) -> None:
        given = "".join(values_of(request.headers, "authorization")).encode()
        if not given:
            raise JsonError(401, "required", "Anonymous caller does not have access.")
        if not secrets.compare_digest(given, self._expected):
            raise JsonError(401, "authError", "Invalid Credentials")

    def _list(self, request: Request, origin: str, bucket: str) -> Answer:
        query = _query(request, _LIST)
        count = query.get("maxResults", str(PAGE_MAX))
        if not _WHOLE.fullmatch(count) or int(count) == 0:
            raise JsonError(400, "invalid", f"Invalid unsigned integer value: '{count}'.")
        after = _name_of(query["pageToken"]) if query.get("pageToken") else None
        found, last = self._store.page(
            bucket, query.get("prefix", ""), after, min(int(count), PAGE_MAX)
        )
        answer: dict[str, object] = {"kind": "storage#objects"}
        if found:
            answer["items"] = [resources.object_resource(origin, stored) for stored in found]
        if last is not None:
            answer["nextPageToken"] = base64.urlsafe_b64encode(last.encode()).decode()
        return document(answer)

    async def _object(
        self, request: Request, origin: str, bucket: str, name: str, *, media: bool
    ) -> Answer:
        _allow(request.method, {"GET"} if media else {"GET", "DELETE"})
        query = _query(request, _OBJECT)
        stored = self._found(bucket, name, query)
        if request.method == "DELETE":
            if not await asyncio.to_thread(self._store.delete, stored):
                raise _no_such_object(bucket, name)
            return Answer(204)
        if media or query.get("alt") == "media":
            return await self._media(request, stored)
        return document(resources.object_resource(origin, stored))

    async def _media(self, request: Request, stored: DiskObject) -> Answer:
        """Return an object's bytes, or the one range of them that is asked for."""
        asked = "".join(values_of(request.headers, "range"))
        if not asked:
            file = await asyncio.to_thread(self._store.open, stored)
            return Answer(200, resources.media_headers(stored), file=file)
        span = _RANGE.fullmatch(asked)
        if span is None:
            raise JsonError(501, "notImplemented", f"The local store does not know {asked}.")
        first, last = int(span[1]), min(int(span[2]), stored.size - 1)
        if first > last:
            raise JsonError(416, "requestedRangeNotSatisfiable", "Request range not satisfiable")
        file = await asyncio.to_thread(self._store.open, stored)
        file.seek(first)
        headers = resources.media_headers(stored, first, last)
        return Answer(206, headers, file=file, file_bytes=last - first + 1)

    def _found(self, bucket: str, name: str, query: Mapping[str, str]) -> DiskObject:
        stored = self._store.get(bucket, name)
        if stored is None:
            raise _no_such_object(bucket, name)
        generation = str(stored.generation)
        if query.get("generation", generation) != generation:
            raise _no_such_object(bucket, name)
        if query.get("ifGenerationMatch", generation) != generation:
            raise JsonError(412, "conditionNotMet", _NOT_MET)
        return stored


def _allow(method: str, allowed: Collection[str]) -> None:
    if method not in allowed:
        raise JsonError(405, "methodNotAllowed", "Method Not Allowed")


def _no_such_object(bucket: str, name: str) -> JsonError:
    return JsonError(404, "notFound", f"No such object: {bucket}/{name}")


def _permissions(request: Request) -> Answer:
    asked = [value for name, value in _pairs(request.raw_query) if name == "permissions"]
    granted = [name for name in asked if name in GRANTED]
    answer: dict[str, object] = {"kind": "storage#testIamPermissionsResponse"}
    return document(answer | ({"permissions": granted} if granted else {}))


def _query(request: Request, known: frozenset[str]) -> Mapping[str, str]:
    """Return the parameters; unknown ones are refused, never ignored."""
    query = dict(_pairs(request.raw_query))
    unknown = sorted(query.keys() - known)
    if unknown:
        raise JsonError(501, "notImplemented", f"The local store does not know {unknown[0]}.")
    return query


def _name_of(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as fault:
        raise JsonError(400, "invalid", "Invalid page token.") from fault
