"""Sign upload URLs (V4, PUT) with google-cloud-storage: with a key, or through IAM without one."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError
from google.auth.iam import Signer as IamBlobSigner
from google.cloud.storage import Bucket, Client
from google.oauth2 import service_account
from requests import RequestException

from service.storage.deadline import AbortableSession, CallFailed, IamTransport
from service.storage.identity import own_address
from service.storage.port import SignedUpload, StorageUnavailable
from service.storage.shares import Shares

LIFETIME: Final = timedelta(minutes=15)
CLOUD: Final = "https://storage.googleapis.com"
RANGE_HEADER: Final = "x-goog-content-length-range"
IAM_SECONDS_MAX: Final = 3.0
IAM_CALLS_MAX: Final = 16
"""Concurrent calls to IAM; further ones wait for a thread, within their own deadline."""
IAM_CALLS_OF_ONE: Final = IAM_CALLS_MAX // 4
"""Of them one owner's."""

# Read from the URL, not from our clock: the library takes the time itself.
_DATE_AND_LIFETIME: Final = re.compile(
    r"[?&]X-Goog-Date=([0-9]{8}T[0-9]{6}Z)&X-Goog-Expires=([0-9]+)&"
)
_TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


class KeySigner:
    """Signs with a service account's own key."""

    def __init__(self, key: Mapping[str, str], bucket: str, *, endpoint: str = CLOUD) -> None:
        """`key` is a service account's, as in its file; `endpoint` is the local store's address."""
        credentials = self._credentials = _account(json.dumps(key))
        self._bucket = _bucket(credentials, bucket)
        self._endpoint = endpoint

    async def sign(
        self, name: str, mime_type: str, max_bytes: int, _owner: str = ""
    ) -> SignedUpload:
        """Sign in this thread: handing it to another costs half as much again as the signature."""
        return _signed(self._bucket, self._credentials, self._endpoint, name, mime_type, max_bytes)

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class IamSigner:
    """Signs through IAM's signBlob, for workload identity: one network call a URL.

    `credentials` are those of a token creator, who may sign for the account; without one, they sign
    for their own.
    """

    credentials: Credentials
    service_account_email: str | None
    bucket: InitVar[str]
    seconds_max: float = field(default=IAM_SECONDS_MAX, kw_only=True)
    new_session: Callable[[], AbortableSession] = field(default=AbortableSession, kw_only=True)

    def __post_init__(self, bucket: str) -> None:
        """Open a pool of threads, whose queue may be full without delaying anybody else."""
        self._bucket = _bucket(self.credentials, bucket)
        self._threads = ThreadPoolExecutor(IAM_CALLS_MAX, thread_name_prefix="sign-blob")
        self._shares = Shares(IAM_CALLS_OF_ONE)

    async def sign(
        self, name: str, mime_type: str, max_bytes: int, owner: str = ""
    ) -> SignedUpload:
        """Sign in a thread under one deadline, at which the thread ends too."""
        session = self.new_session()
        try:
            async with self._shares.place(owner, self.seconds_max):
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, self._sign, session, name, mime_type, max_bytes
                )
        except (TimeoutError, *_FAULTS) as error:
            raise StorageUnavailable(f"IAM did not sign: {type(error).__name__}") from error
        finally:
            session.abort()

    def close(self) -> None:
        """End the threads; no URL may be signed afterwards."""
        self._threads.shutdown(cancel_futures=True)

    def _sign(
        self, session: AbortableSession, name: str, mime_type: str, max_bytes: int
    ) -> SignedUpload:
        with session:
            transport = IamTransport(session, self.seconds_max)
            account = self.service_account_email or own_address(self.credentials, transport)
            signer = IamBlobSigner(transport, self.credentials, account)
            signing = service_account.Credentials(signer, account, _TOKEN_URI)
            return _signed(self._bucket, signing, CLOUD, name, mime_type, max_bytes)


# ValueError and KeyError: a response of IAM of another form than documented.
_FAULTS: Final = (CallFailed, GoogleAuthError, RequestException, OSError, ValueError, KeyError)


@lru_cache(maxsize=1)
def _account(key: str) -> service_account.Credentials:
    """Return the credentials of a key; parsing takes 28 ms, and both modes have the same one."""
    return service_account.Credentials.from_service_account_info(json.loads(key))


def _bucket(credentials: Credentials, name: str) -> Bucket:
    # Only creating a bucket needs a project, but without one the client searches for it.
    return Bucket(Client(project="none", credentials=credentials), name)


def _signed(
    bucket: Bucket,
    credentials: Any,  # noqa: ANN401 - the library's signing credentials share no type
    endpoint: str,
    name: str,
    mime_type: str,
    max_bytes: int,
) -> SignedUpload:
    length_range = f"0,{max_bytes}"
    url: str = bucket.blob(name).generate_signed_url(
        version="v4",
        method="PUT",
        # A duration: a point in time would yield 899 seconds.
        expiration=LIFETIME,
        content_type=mime_type,
        # A dictionary that the library may change: it adds Host and Content-Type.
        headers={RANGE_HEADER: length_range},
        api_access_endpoint=endpoint,
        credentials=credentials,
    )
    required = {"Content-Type": mime_type, RANGE_HEADER: length_range}
    return SignedUpload(url, _expires_at(url), MappingProxyType(required))


def _expires_at(url: str) -> datetime:
    match = _DATE_AND_LIFETIME.search(url)
    if match is None:
        raise AssertionError("the library signed a URL without a date")
    signed_at = datetime.strptime(match[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return signed_at + timedelta(seconds=int(match[2]))
