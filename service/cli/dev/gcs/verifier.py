"""Verification of V4 signed URLs as in the cloud. Pure: the request and the time are arguments.

Order: presence of a signature → parameters → date and lifetime → signer → headers → signature.
That expiry comes before the signature was captured from the cloud.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from service.cli.dev.gcs import refusals
from service.cli.dev.gcs.canonical import (
    Header,
    canonical_request,
    query_pairs,
    string_to_sign,
    values_of,
)
from service.cli.dev.gcs.refusals import ANONYMOUS, Refused, malformed

ALGORITHM: Final = "GOOG4-RSA-SHA256"
LIFETIME_SECONDS_MAX: Final = 7 * 24 * 3600
AHEAD_MAX: Final = timedelta(minutes=15)
"""How far a signer's clock may be ahead of ours."""

CREATE: Final = "storage.objects.create"
_PERMISSIONS: Final = {"PUT": CREATE, "POST": CREATE, "DELETE": "storage.objects.delete"}

_PARAMETERS: Final = ("Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature")
_SCOPE: Final = re.compile(
    r"(?P<email>[^/]+)/(?P<scope>(?P<day>\d{8})/[^/]+/storage/goog4_request)"
)
_DATE: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_SECONDS: Final = re.compile(r"[0-9]{1,10}")
_SIGNATURE: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
_HOST_PORT: Final = re.compile(r"(?P<name>.+):[0-9]*")

PublicKeyOf = Callable[[str], RSAPublicKey | None]
"""Returns a service account's public key by its email address."""


class Request(NamedTuple):
    """What was received. Path and query are raw; header names in lower case, in order."""

    method: str
    raw_path: str
    raw_query: str
    headers: Sequence[Header]


class _Signed(NamedTuple):
    """The well-formed parameters of a signature."""

    email: str
    scope: str
    date: str
    signed_at: datetime
    expires_at: datetime
    names: tuple[str, ...]
    signature: bytes


def verify(request: Request, now: datetime, public_key_of: PublicKeyOf) -> str:
    """Return the email address of who signed the request; raises Refused as the cloud would."""
    pairs = [(name.lower(), value) for name, value in query_pairs(request.raw_query)]
    given = [(name, value) for name, value in pairs if name in _NAMES]
    if not any(name == "x-goog-signature" for name, _ in given):
        raise Refused(refusals.not_permitted(ANONYMOUS, permission_for(request.method)))
    signed = _parsed(given)
    if signed.signed_at > now + AHEAD_MAX:
        raise Refused(refusals.TOO_EARLY)
    if now > signed.expires_at:
        raise Refused(refusals.expired(signed.expires_at.isoformat(timespec="seconds")))
    key = public_key_of(signed.email)
    if key is None:
        raise Refused(refusals.UNKNOWN_SIGNER)
    _check_headers(request, signed)
    _check_signature(request, signed, key)
    return signed.email


def permission_for(method: str) -> str:
    """Return the permission that a method needs on an object."""
    return _PERMISSIONS.get(method, "storage.objects.get")


def _parsed(given: list[tuple[str, str]]) -> _Signed:
    values: dict[str, str] = {}
    for name, value in given:
        if name in values:
            raise Refused(malformed(name, "Parameter was given more than once."))
        values[name] = value
    for name in _NAMES:
        if not values.get(name):
            raise Refused(malformed(name, "Parameter is missing."))
    if values["x-goog-algorithm"] != ALGORITHM:
        raise Refused(malformed("x-goog-algorithm", f"Expected {ALGORITHM}."))
    return _well_formed(values)


def _well_formed(values: dict[str, str]) -> _Signed:
    date, seconds = values["x-goog-date"], values["x-goog-expires"]
    signed_at = _moment(date)
    if not _SECONDS.fullmatch(seconds) or not 0 < int(seconds) <= LIFETIME_SECONDS_MAX:
        raise Refused(malformed("x-goog-expires", f"Expected 1 to {LIFETIME_SECONDS_MAX}."))
    credential = _SCOPE.fullmatch(values["x-goog-credential"])
    if credential is None or credential["day"] != date[:8]:
        raise Refused(malformed("x-goog-credential", "Credential scope is not of this request."))
    if not _SIGNATURE.fullmatch(values["x-goog-signature"]):
        raise Refused(malformed("x-goog-signature", "Signature was not hex encoded."))
    return _Signed(
        email=credential["email"],
        scope=credential["scope"],
        date=date,
        signed_at=signed_at,
        expires_at=signed_at + timedelta(seconds=int(seconds)),
        names=tuple(values["x-goog-signedheaders"].split(";")),
        signature=bytes.fromhex(values["x-goog-signature"]),
    )


def _moment(date: str) -> datetime:
    with suppress(ValueError):
        if _DATE.fullmatch(date):
            return datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    raise Refused(malformed("x-goog-date", "Expected YYYYMMDDTHHMMSSZ."))


def _check_headers(request: Request, signed: _Signed) -> None:
    if list(signed.names) != sorted(set(signed.names)) or "host" not in signed.names:
        raise Refused(malformed("x-goog-signedheaders", "Expected sorted names, host among them."))
    received = [name for name, _ in request.headers]
    for name in signed.names:
        if name not in received:
            details = "Header was included in signedheaders, but not in the request."
            raise Refused(malformed(name, details))
    for name in received:
        if name.startswith("x-goog-") and name not in signed.names:
            raise Refused(malformed(name, "Header must be signed."))


def _check_signature(request: Request, signed: _Signed, key: RSAPublicKey) -> None:
    """Try the host as sent and without its port: signers differ in which of them they sign."""
    hosts = values_of(request.headers, "host")
    with_port = _HOST_PORT.fullmatch(hosts[0])
    tried = ""
    for host in [",".join(hosts), *([with_port["name"]] if with_port else [])]:
        canonical = canonical_request(
            request.method, request.raw_path, request.raw_query, request.headers, signed.names, host
        )
        text = string_to_sign(ALGORITHM, signed.date, signed.scope, canonical)
        if _is_signature(key, signed.signature, text):
            return
        tried = tried or canonical
    text = string_to_sign(ALGORITHM, signed.date, signed.scope, tried)
    raise Refused(refusals.signature_mismatch(text, tried))


def _is_signature(key: RSAPublicKey, signature: bytes, text: str) -> bool:
    try:
        key.verify(signature, text.encode(), PKCS1v15(), SHA256())
    except InvalidSignature:
        return False
    return True


_NAMES: Final = tuple(f"x-goog-{name.lower()}" for name in _PARAMETERS)
