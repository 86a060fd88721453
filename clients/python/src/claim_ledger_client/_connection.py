"""What both clients are made of: checked settings, and requests and answers as bytes."""

import math
import platform
import re
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
import msgspec

from claim_ledger_client._model import Answer
from claim_ledger_client.api_errors import BY_CODE
from claim_ledger_client.errors import (
    ApiError,
    ClaimLedgerError,
    ConnectionLostError,
    IncompatibleAnswerError,
    UnreachableError,
    UnreadableAnswerError,
    UntrustedServerError,
)
from claim_ledger_client.models import Error

T = TypeVar("T", bound=Answer)

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""A page of the list has at most some megabytes."""


def _version() -> str:
    try:
        return version("claim-ledger-client")
    except PackageNotFoundError:  # run from its sources
        return "0"


USER_AGENT: Final = (
    f"claim-ledger-client/{_version()} "
    f"python/{platform.python_version()} httpx2/{httpx2.__version__}"
)
_KEY: Final = re.compile(r"pk_(live|test)_[!-~]+")
_LOOPBACK: Final = {"127.0.0.1", "::1", "localhost"}


def checked_key(api_key: str) -> str:
    """Return a key that has the form of one; raise ValueError, which does not show it."""
    if not _KEY.fullmatch(api_key):
        raise ValueError("api_key is no API key: one begins with pk_live_ or pk_test_")
    return api_key


def checked_url(base_url: str) -> str:
    """Return the base address without a slash at its end; raise ValueError if it is not safe."""
    parts = urlsplit(base_url)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ValueError("base_url has to begin with https://, or the key can be read on its way")
    if not parts.path.rstrip("/").endswith("/v1"):
        raise ValueError("base_url ends in /v1, such as https://api.example.com/v1")
    return base_url.rstrip("/")


def headers_of(api_key: str, *, body: bool) -> dict[str, str]:
    """Return the headers of a request."""
    return {
        "Authorization": f"Bearer {api_key}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # so that what is counted is what is kept
        "User-Agent": USER_AGENT,
    } | ({"Content-Type": "application/json"} if body else {})


def address(base_url: str, path: str, parts: Mapping[str, str]) -> str:
    """Return the URL of an operation, with the parts of its path filled in."""
    return base_url + path.format_map({name: quote(one, safe="") for name, one in parts.items()})


def timeouts(seconds: float) -> httpx2.Timeout:
    """Return the time-outs of one attempt: of each of its steps."""
    return httpx2.Timeout(seconds, connect=min(seconds, 10.0))


def failure_of(error: httpx2.HTTPError) -> ClaimLedgerError:
    """Return what a fault of the connection means to the caller."""
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    if not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ConnectionLostError(reason)
    return (UntrustedServerError if _is_untrusted(error) else UnreachableError)(reason)


def _is_untrusted(error: BaseException | None) -> bool:
    """Return whether a certificate that was refused is what an error comes from."""
    while error and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def answer_of(status: int, headers: httpx2.Headers, body: bytes, into: type[T]) -> T:
    """Return a decoded answer; raise ApiError or UnreadableAnswerError."""
    if not 200 <= status < 300:  # noqa: PLR2004 - what HTTP calls a success
        raise _refusal(status, headers, body)
    try:
        return msgspec.json.decode(body, type=into).with_headers(headers)
    except msgspec.MsgspecError as error:
        request_id = headers.get("X-Request-Id")
        # Every answer of the API has an id, and a proxy's seldom.
        whole = isinstance(error, msgspec.ValidationError) and request_id
        kind = IncompatibleAnswerError if whole else UnreadableAnswerError
        reason = f"an answer that cannot be read: {error}"
        raise kind(status, reason, request_id=request_id) from error


def _refusal(status: int, headers: httpx2.Headers, body: bytes) -> ClaimLedgerError:
    retry_after = _seconds(headers.get("Retry-After", ""))
    request_id = headers.get("X-Request-Id")
    try:
        error = msgspec.json.decode(body, type=Error)
    except msgspec.MsgspecError:
        reason = "an answer without a code"
        return UnreadableAnswerError(status, reason, retry_after, request_id=request_id)
    return BY_CODE.get(error.code, ApiError)(
        error.code,
        error.message,
        status=status,
        details=error.details or None,
        request_id=request_id,
        retry_after_seconds=retry_after,
        charged="X-RateLimit-Limit" in headers,
    )


def _seconds(after: str) -> int | None:
    """Return the seconds of `Retry-After`, which a proxy may write as a date (RFC 9110, 10.2.3)."""
    if after.isascii() and after.isdigit():
        return int(after)
    try:
        wait = parsedate_to_datetime(after) - datetime.fromtimestamp(time.time(), UTC)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0, math.ceil(wait.total_seconds()))
