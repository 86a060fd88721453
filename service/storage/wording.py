"""What an operator reads of a store's error."""

from typing import Final

_CREDENTIALS: Final = "the credentials are refused: is the key deleted, the account disabled?"
_WORDS: Final = {
    "NotFound": "there is no bucket of this name",
    "Forbidden": "the account may not do this: grant it the role on the bucket",
    "Unauthorized": _CREDENTIALS,
    "RefreshError": _CREDENTIALS,
    "TransportError": "the store cannot be reached",
    "ConnectionError": "the store cannot be reached",
    "CallFailed": "the store cannot be reached",
    "TimeoutError": "the store does not answer in time",
    "ConnectTimeout": "the store does not answer in time",
    "ReadTimeout": "the store does not answer in time",
}
"""What an operator can mend, by the class of the client's error."""


def words(error: Exception) -> str:
    """Return, in words for a person, why the store did not do what it was asked."""
    cause: BaseException | None = error
    while cause is not None:
        for kind in type(cause).__mro__:
            if kind.__name__ in _WORDS:
                return _WORDS[kind.__name__]
        cause = cause.__cause__ or cause.__context__
    return _text(error)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
