"""Retrying what leaves the service: how often, and after which waits."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, NamedTuple

ATTEMPTS_MAX: Final = 24
"""With the waits below, a day and some minutes."""
WAIT_SECONDS_MAX: Final = 2 * 3600
UNKNOWN_COUNTS: Final = 8
"""Attempts that one stands for, with their waits, if nobody knows what it did: it may have done
what it was for. ATTEMPTS_MAX are three of them."""


def wait_after(attempt: int) -> timedelta:
    """Return how long to wait after an attempt, counted from 1: twice as long as before it."""
    return timedelta(seconds=min(2**attempt, WAIT_SECONDS_MAX))


class Retries(NamedTuple):
    """How often something is tried, and how long to wait after each attempt, counted from 1."""

    attempts_max: int
    wait_after: Callable[[int], timedelta]

    def after_unknown(self, attempt: int) -> tuple[int, timedelta]:
        """Return how many attempts those are with one of which the effect is unknown, and the wait.

        After the last one, nothing is left to wait for.
        """
        attempts = attempt + UNKNOWN_COUNTS - 1
        waits = range(attempt, attempts + 1) if attempts < self.attempts_max else ()
        return attempts, sum(map(self.wait_after, waits), timedelta())


FOR_A_DAY: Final = Retries(ATTEMPTS_MAX, wait_after)
