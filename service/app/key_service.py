"""Master keys that Google Cloud KMS wraps: unwrapped once, when a process starts.

KMS wraps master keys and nothing else: they wrap the data keys, in memory. So no request waits for
KMS, and a process that has started does not need it any more.
"""

import base64
import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from service.core.extras import extra
from service.ledger.encryption import KEY_BYTES

if TYPE_CHECKING:
    from google.cloud.kms_v1 import KeyManagementServiceClient

PREFIX: Final = "gcp-kms:"
CALL_SECONDS_MAX: Final = 5.0
SECONDS_MAX: Final = 20.0
"""For a key with all attempts, the credentials for them included."""
CIPHERTEXT_BYTES_MAX: Final = 4096
_BOUND_TO: Final = b"claim-ledger master key"
"""Authenticated with the key: nothing else that this KMS key encrypted passes for one of ours."""
_NAME: Final = re.compile(
    r"projects/[A-Za-z0-9.:_-]+/locations/[a-z0-9-]+/keyRings/[\w-]+/cryptoKeys/[\w-]+", re.ASCII
)

_T = TypeVar("_T")


class KeyServiceFault(Exception):
    """KMS cannot be used, refuses, or answers something else. `str()` is for an operator."""


class KmsKey(NamedTuple):
    """A master key as KMS encrypted it, and the name of the KMS key that did."""

    name: str
    ciphertext: bytes

    @classmethod
    def parse(cls, text: str) -> Self:
        """Take `gcp-kms:NAME:CIPHERTEXT`, as `keys-at-rest keygen` prints it; raises ValueError."""
        name, _, encoded = text.removeprefix(PREFIX).rpartition(":")
        ciphertext = base64.b64decode(encoded, validate=True)
        if not 0 < len(ciphertext) <= CIPHERTEXT_BYTES_MAX:
            raise ValueError("no ciphertext")
        return cls(kms_name(name), ciphertext)

    @property
    def text(self) -> str:
        """The form of the settings."""
        return f"{PREFIX}{self.name}:{base64.b64encode(self.ciphertext).decode()}"


def kms_name(text: str) -> str:
    """Take the name of a KMS key; raises ValueError."""
    if not _NAME.fullmatch(text):
        raise ValueError("expected projects/…/locations/…/keyRings/…/cryptoKeys/…")
    return text


def new_key(name: str, endpoint: str | None) -> KmsKey:
    """Draw a master key and have KMS wrap it; raises KeyServiceFault."""
    key = secrets.token_bytes(KEY_BYTES)

    def encrypt(client: "KeyManagementServiceClient") -> KmsKey:
        answer = client.encrypt(
            request=_checked("plaintext", name, key), retry=_retry(), timeout=CALL_SECONDS_MAX
        )
        if not answer.verified_plaintext_crc32c:
            raise KeyServiceFault("KMS does not confirm that it received the key whole")
        return KmsKey(name, _whole(answer.ciphertext, answer.ciphertext_crc32c))

    return _asked(name, endpoint, encrypt)


@cache
def unwrapped(key: KmsKey, endpoint: str | None) -> bytes:
    """Return a master key: from memory after the first time, also in processes forked since.

    Raises KeyServiceFault.
    """

    def decrypt(client: "KeyManagementServiceClient") -> bytes:
        answer = client.decrypt(
            request=_checked("ciphertext", key.name, key.ciphertext),
            retry=_retry(),
            timeout=CALL_SECONDS_MAX,
        )
        plain = _whole(answer.plaintext, answer.plaintext_crc32c)
        if len(plain) != KEY_BYTES:
            raise KeyServiceFault(f"the key has {len(plain)} bytes; expected {KEY_BYTES}")
        return plain

    return _asked(key.name, endpoint, decrypt)


def _asked(
    name: str, endpoint: str | None, call: Callable[["KeyManagementServiceClient"], _T]
) -> _T:
    """Make a call to KMS, or to a local key service, within SECONDS_MAX; raises KeyServiceFault."""
    try:
        return _within(SECONDS_MAX, lambda: _call(endpoint, call))
    except KeyServiceFault as fault:
        raise KeyServiceFault(f"{name}: {fault}") from fault
    except TimeoutError:
        raise KeyServiceFault(f"{name}: KMS did not answer in {SECONDS_MAX:.0f} s") from None


def _call(endpoint: str | None, call: Callable[["KeyManagementServiceClient"], _T]) -> _T:
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from requests import RequestException

        client = _client(endpoint)
    except ImportError as error:
        raise KeyServiceFault(extra("kms")) from error
    except Exception as error:  # the library's, and whatever its transports raise
        raise KeyServiceFault(f"no credentials for KMS: {error}") from error
    try:
        with client:
            return call(client)
    except KeyServiceFault:
        raise
    except (GoogleAPIError, GoogleAuthError, RequestException) as error:
        raise KeyServiceFault(f"KMS refuses, or is away: {error}") from error
    except Exception as error:  # noqa: BLE001 - an answer of another shape, never to be quoted
        raise KeyServiceFault(f"KMS answered something else ({type(error).__name__})") from None


def _client(endpoint: str | None) -> "KeyManagementServiceClient":
    from google.api_core.client_options import ClientOptions
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.kms_v1 import KeyManagementServiceClient

    if endpoint is None:  # by the identity of the machine or the workload
        return KeyManagementServiceClient(transport="rest")
    return KeyManagementServiceClient(
        transport="rest",
        credentials=AnonymousCredentials(),
        client_options=ClientOptions(api_endpoint=endpoint),
    )


def _retry() -> Any:  # noqa: ANN401 - the client's own type
    from google.api_core.retry import Retry, if_transient_error

    return Retry(if_transient_error, initial=0.2, maximum=2.0, timeout=SECONDS_MAX)


def _checked(content: str, name: str, value: bytes) -> dict[str, Any]:
    """Return a request, with checksums by which KMS sees whether it arrived whole."""
    from google_crc32c import value as crc32c

    return {
        "name": name,
        content: value,
        f"{content}_crc32c": crc32c(value),
        "additional_authenticated_data": _BOUND_TO,
        "additional_authenticated_data_crc32c": crc32c(_BOUND_TO),
    }


def _whole(value: bytes, checksum: object) -> bytes:
    from google_crc32c import value as crc32c

    if crc32c(value) != checksum:
        raise KeyServiceFault("the answer of KMS did not arrive whole")
    return value


def _within(seconds: float, call: Callable[[], _T]) -> _T:
    """Return what a call returns, or raise TimeoutError.

    The client's own time-outs count from one byte to the next. A thread that is left behind ends
    with the process, which does not start without its keys.
    """
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, name="key service", daemon=True).start()
    return outcome.result(seconds)
