"""Sending one message to an endpoint: to a public address, over TLS, bounded in bytes and time.

httpcore2 speaks HTTP and TLS for the host of the URL, and reaches the addresses that were judged.
It follows no redirect and knows no proxy. Of the answer the head alone is read: its status counts.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final, NamedTuple

import httpcore2

from service.http.posting import Network, posted
from service.webhooks.addresses import resolve
from service.webhooks.urls import NotPublic, check_url

SECONDS_MAX: Final = 15.0
"""For one attempt, from the look-up of the host to the head of the answer."""
ANSWER_BYTES_MAX: Final = 32 * 1024
"""Of an answer's head, and of all interim answers before it (1xx), of which httpcore2 takes any
number; records of TLS that hold no data are bounded apart (`service/http/bounded_stream.py`)."""
RETRY_AFTER_SECONDS_MAX: Final = 24 * 3600
_USER_AGENT: Final = "claim-ledger-webhooks/1"


class Undelivered(Exception):
    """No answer came. `str()` tells the partner why; it quotes nothing that was received.

    `reason` is for our log alone, where the partner is not told.
    """

    def __init__(self, fault: str, reason: str = "") -> None:
        super().__init__(fault)
        self.reason: Final = reason


class EndpointAnswer(NamedTuple):
    """What an endpoint answered; `retry_after_seconds` where it said so."""

    status: int
    retry_after_seconds: float | None = None

    @property
    def is_delivered(self) -> bool:
        """Whether the endpoint took the message."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of statuses


@cache
def _by_authorities() -> ssl.SSLContext:
    """Return what the machine's authorities vouch by: reading them takes 20 ms, once a process."""
    return ssl.create_default_context()


class Sender:
    """Sends messages. `allow_private`, in development alone, lets them go to this machine."""

    def __init__(self, *, allow_private: bool = False, tls: ssl.SSLContext | None = None) -> None:
        """`tls` None: the machine's authorities vouch for hosts."""
        self._allow_private = allow_private
        self._tls = tls or _by_authorities()

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> EndpointAnswer:
        """Send a message, and return the answer; raises Undelivered.

        `now` is what a date in Retry-After is compared with.
        """
        try:
            async with asyncio.timeout(SECONDS_MAX):
                return await self._post(url, headers, body, now)
        except NotPublic as error:
            raise Undelivered(str(error), error.reason) from error
        except (TimeoutError, httpcore2.TimeoutException) as error:
            raise Undelivered(f"no answer within {SECONDS_MAX:.0f} seconds") from error
        except httpcore2.ConnectError as error:
            raise Undelivered(_why(error)) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError) as error:
            raise Undelivered("the connection ended without an answer in HTTP") from error

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes, now: datetime
    ) -> EndpointAnswer:
        parts = check_url(url, allow_private=self._allow_private)
        addresses = await resolve(parts.hostname or "", allow_private=self._allow_private)
        given = {"user-agent": _USER_AGENT, **headers}
        network = Network(ANSWER_BYTES_MAX, addresses)
        async with posted(parts, given, body, self._tls, network) as answer:
            return EndpointAnswer(answer.status, _retry_after(answer.headers, now))


def _why(error: httpcore2.ConnectError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "the certificate of the host was not accepted"
        if isinstance(cause, ssl.SSLError):
            return "TLS could not be agreed on"
        cause = cause.__cause__ or cause.__context__
    return "no connection"


def _retry_after(headers: Iterable[tuple[bytes, bytes]], now: datetime) -> float | None:
    """Return how long the answer asks to wait, within bounds; None where it does not."""
    text = next(
        (value.decode("latin-1") for name, value in headers if name.lower() == b"retry-after"), ""
    ).strip()
    if text.isascii() and text.isdigit():
        seconds = float(text)
    else:
        try:
            seconds = (parsedate_to_datetime(text) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
