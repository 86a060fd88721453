"""Retrying what leaves the service: how often, and after which waits."""

from datetime import timedelta
from typing import Final

ATTEMPTS_MAX: Final = 20
"""With the waits below, about a day."""
WAIT_SECONDS_MAX: Final = 2 * 3600


def wait_after(attempt: int) -> timedelta:
    """Return how long to wait after an attempt, counted from 1: twice as long as before it."""
    return timedelta(seconds=min(2**attempt, WAIT_SECONDS_MAX))
