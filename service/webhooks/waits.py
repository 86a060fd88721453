"""How often an endpoint is tried, and how long it is left alone after a failure."""

import secrets
from datetime import timedelta
from typing import Final

from service.core.retries import Retries

GIVES_UP_AFTER: Final = timedelta(days=3)
FAILURES_MAX: Final = 3
"""After so many rounds of attempts in a row that failed, the endpoint waits, whatever is due."""
ENDPOINT_WAIT_SECONDS_MAX: Final = 900.0
CANNOT_SEND_SECONDS: Final = 60.0
"""How long an endpoint is left alone that is enabled here, and not in the ledger of accounts; and a
delivery that cannot be read or sent by a fault of ours."""

_FIRST_WAIT_SECONDS: Final = 5
_WAIT_SECONDS_MAX: Final = 8 * 3600
_ATTEMPTS_MAX: Final = 17
_JITTER: Final = 0.1


def wait_after(attempt: int) -> timedelta:
    """Return how long to wait after an attempt: four times as long as before it, up to eight hours.

    A tenth more or less, so that what failed together does not come back together.
    """
    seconds = min(_FIRST_WAIT_SECONDS * 4 ** (attempt - 1), _WAIT_SECONDS_MAX)
    jitter = 1 + _JITTER * (secrets.randbelow(2001) / 1000 - 1)
    return timedelta(seconds=seconds * jitter)


RETRIES: Final = Retries(_ATTEMPTS_MAX, wait_after)
"""Seventeen attempts, which take a little longer than three days: of an endpoint that took nothing
meanwhile no claim is set aside before it is given up itself."""
