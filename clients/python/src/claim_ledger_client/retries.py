"""What is retried, and when: the document's `x-retry`, with exponential backoff and full jitter."""

import random
import time
from dataclasses import dataclass, field
from typing import Final

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
from claim_ledger_client.operations import STATUSES, Operation

_OK: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and how long a call is tried; `Retries(attempts=1)` is once.

    The wait before attempt n + 1 is drawn from 0 to `first_wait_seconds` doubled n - 1 times, at
    most `longest_wait_seconds`, and comes on top of what `Retry-After` asks for. A call gives up
    rather than begin a wait that ends `total_seconds` after it began.
    """

    attempts: int = 8
    first_wait_seconds: float = 0.25
    longest_wait_seconds: float = 8.0
    total_seconds: float = 120.0


@dataclass(slots=True)
class Patience:
    """What is left of one call's retries."""

    retries: Retries
    attempts: int = 0
    _began: float = field(default_factory=time.monotonic)

    def wait_seconds(self, operation: Operation, error: ClaimLedgerError) -> float | None:
        """Return how long to wait before the next attempt, or None where there is none."""
        return self.backoff(error) if may_repeat(operation, error) else None

    def backoff(self, error: ClaimLedgerError) -> float | None:
        """Return how long to wait after an error that may be retried; None: no more attempts."""
        self.attempts += 1
        most = self.retries.first_wait_seconds * 2.0 ** (self.attempts - 1)
        wait = random.uniform(0, min(most, self.retries.longest_wait_seconds))  # noqa: S311 - a wait
        wait += getattr(error, "retry_after_seconds", None) or 0
        spent = time.monotonic() - self._began
        if self.attempts >= self.retries.attempts or spent + wait > self.retries.total_seconds:
            return None
        return wait


def may_repeat(operation: Operation, error: ClaimLedgerError) -> bool:
    """Return whether the identical request may succeed, and does no harm if it was carried out."""
    match error:
        case UntrustedServerError() | IncompatibleAnswerError():
            return False
        case UnreachableError():
            return True
        case ApiError(code=code) if code in BY_CODE:
            return code in operation.codes or (
                code in operation.uncharged_codes and not error.charged
            )
        case ApiError(status=status) | UnreadableAnswerError(status=status):
            return operation.repeat == "safe" and (status in STATUSES or status in _OK)
        case ConnectionLostError():
            return operation.repeat == "safe"
        case _:
            return False
