"""Check a bucket for an operator: what is wrong with it, and a round trip as proof.

Each finding is a row of the result; only our own faults are exceptions.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Final, Literal, NamedTuple

import requests
from google.auth.exceptions import GoogleAuthError

from service.storage.error_text import error_text
from service.storage.google import GoogleObjectStore
from service.storage.port import SignedUpload, Storage, StorageUnavailable

PREFIX: Final = "claim-ledger-check/"
"""Apart from the prefix of documents."""
PUT_SECONDS_MAX: Final = 10.0

_CONTENT: Final = b"claim-ledger storage check\n"
_TYPE: Final = "application/pdf"
_LIST: Final = "storage.objects.list"
_DELETE: Final = "storage.objects.delete"
_BUCKET: Final = "storage.buckets.get"


class Row(NamedTuple):
    """The result of one check; a `note` is no failure, but worth knowing."""

    check: str
    result: Literal["ok", "note", "failed"]
    detail: str


async def check(choose: Callable[[], Storage], bucket: str | None) -> list[Row]:
    """Check one mode's bucket, up to the first failure, on which the later checks depend.

    `choose` returns the bucket's storage, or raises for credentials that cannot be used.
    """
    if bucket is None:
        return [Row("settings", "failed", "no bucket is set: documents are unavailable")]
    try:
        storage = choose()
    except (GoogleAuthError, OSError, ValueError, KeyError) as error:
        return [Row("credentials", "failed", f"cannot be used: {error_text(error)}")]
    rows: list[Row] = []
    try:
        async for row in _checked(storage, bucket):
            rows.append(row)
            if row.result == "failed":
                break
    finally:
        storage.close()
    return rows


async def _checked(storage: Storage, bucket: str) -> AsyncIterator[Row]:
    granted = {_LIST, _DELETE}
    if isinstance(storage.store, GoogleObjectStore):
        try:
            granted = await storage.store.granted([_LIST, _DELETE, _BUCKET])
        except StorageUnavailable as error:
            yield Row("bucket", "failed", f"{bucket}: {error_text(error)}")
            return
        yield Row("bucket", "ok", bucket)
        yield _roles(granted)
        if _BUCKET in granted:
            yield await _cors(storage.store)
            yield await _deletion(storage.store)
    async for row in _round_trip(storage, can_delete=_DELETE in granted):
        yield row


def _roles(granted: set[str]) -> Row:
    if _LIST not in granted:
        detail = f"{_LIST} is missing: grant roles/storage.objectViewer on the bucket"
        return Row("roles", "failed", detail)
    if _DELETE not in granted:
        return Row("roles", "note", f"without {_DELETE} `documents sweep` cannot remove objects")
    return Row("roles", "ok", "may list and delete")


async def _cors(store: GoogleObjectStore) -> Row:
    try:
        rules = await store.cors()
    except StorageUnavailable as error:
        return Row("cors", "failed", error_text(error))
    if not rules:
        return Row("cors", "ok", "none: servers may upload, browsers may not")
    if any("PUT" in rule.get("method", ()) for rule in rules):
        return Row("cors", "note", "browsers of the origins in the bucket's rules may upload")
    return Row("cors", "note", "no rule of the bucket allows PUT: browsers cannot upload")


async def _deletion(store: GoogleObjectStore) -> Row:
    try:
        kept, has_versions = await store.deletion()
    except StorageUnavailable as error:
        return Row("deletion", "failed", error_text(error))
    if has_versions:
        return Row("deletion", "note", "deleted objects stay as older versions: nothing is erased")
    if kept:
        detail = f"deleted objects can be restored for {kept.total_seconds() / 86_400:g} days"
        return Row("deletion", "note", f"{detail}: an erasure is complete after that")
    return Row("deletion", "ok", "deleted objects are gone at once")


async def _round_trip(storage: Storage, *, can_delete: bool) -> AsyncIterator[Row]:
    """Sign, upload, upload again, list, delete."""
    name = f"{PREFIX}{secrets.token_hex(16)}.pdf"
    try:
        signed = await storage.signer.sign(name, _TYPE, len(_CONTENT))
    except StorageUnavailable as error:
        yield Row("signing", "failed", error_text(error))
        return
    yield Row("signing", "ok", "a URL for a PUT, valid for 15 minutes")
    answer = await asyncio.to_thread(_put, signed)
    yield Row("upload", "ok" if answer == "200" else "failed", f"a signed PUT: {answer}")
    if await asyncio.to_thread(_put, signed) == "200":
        yield Row("overwriting", "note", _OVERWRITES)
    else:
        yield Row("overwriting", "ok", "a second PUT to the same URL is refused")
    yield await _found(storage, name, can_delete=can_delete)


_OVERWRITES: Final = (
    "a second PUT replaces the first for 15 minutes, because the signer may delete: sign with an "
    "account that has roles/storage.objectCreator alone"
)


async def _found(storage: Storage, name: str, *, can_delete: bool) -> Row:
    try:
        found = (await storage.store.under(name)).get(name)
        if found is None or (found.size, found.content_type) != (len(_CONTENT), _TYPE):
            return Row("round trip", "failed", f"the upload is not listed: {name}")
        if not can_delete:
            return Row("round trip", "note", f"uploaded and listed; stays in the bucket: {name}")
        await storage.store.delete(name, found.generation)
    except StorageUnavailable as error:
        return Row("round trip", "failed", f"{name}: {error_text(error)}")
    return Row("round trip", "ok", "uploaded, listed and deleted")


def _put(signed: SignedUpload) -> str:
    """Return `200`, or how the store refused it."""
    try:
        answer = requests.put(
            signed.url, _CONTENT, headers=dict(signed.required_headers), timeout=PUT_SECONDS_MAX
        )
    except requests.RequestException as error:
        return error_text(error)
    code = answer.text.partition("<Code>")[2].partition("</Code>")[0]
    return f"{answer.status_code} {code}".strip()
