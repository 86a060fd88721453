"""What an operator reads about a store's error."""

from typing import Final

_CREDENTIALS: Final = "the credentials are refused: is the key deleted, the account disabled?"
_NO_IDENTITY: Final = (
    "no credentials were found: set CLAIM_LEDGER_STORAGE_KEY_FILE, or run with workload identity, "
    "whose metadata server has to answer"
)
_NO_ADDRESS: Final = (
    "the credentials are of no service account: name the one that signs in "
    "CLAIM_LEDGER_STORAGE_SERVICE_ACCOUNT"
)
_UNREACHABLE: Final = "the store cannot be reached"
_TIMEOUT: Final = "the store does not answer in time"
_TEXTS: Final = {
    "NotFound": "there is no bucket of this name",
    "Forbidden": "the account may not do this: grant it the role on the bucket",
    "Unauthorized": _CREDENTIALS,
    "RefreshError": _CREDENTIALS,
    "NoIdentity": _NO_IDENTITY,
    "NoAddress": _NO_ADDRESS,
    "TransportError": _UNREACHABLE,
    "ConnectionError": _UNREACHABLE,
    "CallFailed": _UNREACHABLE,
    "TimeoutError": _TIMEOUT,
    "ConnectTimeout": _TIMEOUT,
    "ReadTimeout": _TIMEOUT,
}
"""By the class of the client's error; each is something that an operator can fix."""


def error_text(error: Exception) -> str:
    """Return why the store failed: a text for its nearest known cause, or the error's own."""
    cause: BaseException | None = error
    while cause is not None:
        for kind in type(cause).__mro__:
            if kind.__name__ in _TEXTS:
                return _TEXTS[kind.__name__]
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
