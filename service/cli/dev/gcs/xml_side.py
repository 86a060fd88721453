"""The XML API: a signed PUT makes an object, once. No other signed request is permitted."""

import asyncio
import base64
import math
import re
from typing import Final
from urllib.parse import unquote_to_bytes

from service.cli.dev.gcs import refusals
from service.cli.dev.gcs.canonical import query_pairs, values_of
from service.cli.dev.gcs.disk import DiskObject, DiskStore, ObjectExists
from service.cli.dev.gcs.http import Answer, Body
from service.cli.dev.gcs.incoming import Incoming
from service.cli.dev.gcs.refusals import CONTENT_TYPE, Refused
from service.cli.dev.gcs.verifier import CREATE, PublicKeyOf, Request, permission_for, verify
from service.core.clock import Clock

_RANGE_HEADER: Final = "x-goog-content-length-range"
_KNOWN_HEADERS: Final = frozenset({_RANGE_HEADER, "x-goog-date"})
_RANGE: Final = re.compile(r"\s*([0-9]{1,15})\s*,\s*([0-9]{1,15})\s*")
_PATH: Final = re.compile(r"/(?P<bucket>[^/]+)/(?P<name>.+)", re.DOTALL)
_NAME_BYTES_MAX: Final = 1024


class XmlSide:
    """Serves path-style requests, `/<bucket>/<object>`."""

    def __init__(self, store: DiskStore, public_key_of: PublicKeyOf, clock: Clock) -> None:
        self._store = store
        self._public_key_of = public_key_of
        self._clock = clock

    async def answer(self, request: Request, body: Body) -> Answer:
        """Return the response; drain the body of a refused request. Raises Interrupted."""
        try:
            return _stored(await self._put(request, body))
        except Refused as error:
            await body.drain()
            refusal = error.refusal
            return Answer(refusal.status, [("content-type", CONTENT_TYPE)], refusal.xml())

    async def _put(self, request: Request, body: Body) -> DiskObject:
        signer = self._signer(request)
        bucket, name = self._target(request)
        _refuse_unknown(request)
        limits = _range(request)
        taken = refusals.not_permitted(signer, "storage.objects.delete")
        if self._store.get(bucket, name) is not None:
            raise Refused(taken)
        with self._store.receive() as incoming:
            await _receive(incoming, request, limits, body)
            types = values_of(request.headers, "content-type") or ["application/octet-stream"]
            try:
                return await asyncio.to_thread(
                    self._store.publish, incoming, bucket, name, types[0]
                )
            except ObjectExists as error:
                raise Refused(taken) from error

    def _signer(self, request: Request) -> str:
        """Return the signer, who may create objects and nothing else."""
        email = verify(request, self._clock(), self._public_key_of)
        permission = permission_for(request.method)
        if permission != CREATE:
            raise Refused(refusals.not_permitted(email, permission))
        if request.method != "PUT":
            raise Refused(refusals.METHOD_NOT_ALLOWED)
        return email

    def _target(self, request: Request) -> tuple[str, str]:
        """Return the bucket, which exists, and the object's name."""
        decoded = unquote_to_bytes(request.raw_path).decode(errors="surrogateescape")
        path = _PATH.fullmatch(decoded)
        if path is None or not _is_name(path["name"]):
            raise Refused(refusals.INVALID_URI)
        if not self._store.has_bucket(path["bucket"]):
            raise Refused(refusals.NO_SUCH_BUCKET)
        return path["bucket"], path["name"]


async def _receive(
    incoming: Incoming, request: Request, limits: tuple[int, float], body: Body
) -> None:
    """Receive the body; refuse it as soon as its size shows that it will be refused."""
    least, most = limits
    lengths = values_of(request.headers, "content-length")
    declared = int(lengths[0]) if lengths else None
    if declared is not None:
        _refuse_size(declared, least, most)
    async for chunk in body.chunks():
        incoming.write(chunk)
        _refuse_size(incoming.size, 0, most)
    if declared is not None and incoming.size != declared:
        raise Refused(refusals.INCOMPLETE_BODY)
    _refuse_size(incoming.size, least, most)
    digests = values_of(request.headers, "content-md5")
    if digests and digests != [incoming.md5]:
        raise Refused(refusals.BAD_DIGEST)


def _refuse_size(size: int, least: int, most: float) -> None:
    if size > most:
        raise Refused(refusals.TOO_LARGE)
    if size < least:
        raise Refused(refusals.TOO_SMALL)


def _range(request: Request) -> tuple[int, float]:
    """Return the least and the most bytes (both inclusive); no header allows any number."""
    values = values_of(request.headers, _RANGE_HEADER)
    if not values:
        return 0, math.inf
    match = _RANGE.fullmatch(values[0]) if len(values) == 1 else None
    if match is None or int(match[1]) > int(match[2]):
        raise Refused(refusals.invalid_argument(f"Invalid value of {_RANGE_HEADER}."))
    return int(match[1]), int(match[2])


def _refuse_unknown(request: Request) -> None:
    """Refuse what would change an upload in the cloud: ignoring it would be less strict."""
    for name, _ in request.headers:
        if name.startswith("x-goog-") and name not in _KNOWN_HEADERS:
            raise Refused(refusals.not_implemented(f"the header {name}"))
    for name, _ in query_pairs(request.raw_query):
        if not name.lower().startswith("x-goog-"):
            raise Refused(refusals.not_implemented(f"the parameter {name}"))
    if values_of(request.headers, "content-encoding"):
        raise Refused(refusals.not_implemented("the header content-encoding"))


def _is_name(name: str) -> bool:
    """Return whether the cloud accepts it as an object's name."""
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        return False
    return (
        len(raw) <= _NAME_BYTES_MAX
        and not {"\r", "\n"} & set(name)
        and name not in {".", ".."}
        and not name.startswith(".well-known/acme-challenge/")
    )


def _stored(stored: DiskObject) -> Answer:
    headers = [
        ("etag", f'"{base64.b64decode(stored.md5).hex()}"'),
        ("x-goog-generation", str(stored.generation)),
        ("x-goog-metageneration", "1"),
        ("x-goog-hash", f"crc32c={stored.crc32c},md5={stored.md5}"),
        ("x-goog-stored-content-encoding", "identity"),
        ("x-goog-stored-content-length", str(stored.size)),
        ("content-type", "text/html; charset=UTF-8"),
    ]
    return Answer(200, headers)
