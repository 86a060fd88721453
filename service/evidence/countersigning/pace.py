"""How often others are asked to sign: at each new checkpoint, and less often after failures."""

import random
from collections.abc import Callable
from typing import Final

LOOK_SECONDS: Final = 10.0
"""Between two looks for a checkpoint that is not signed: three small queries."""
RETRY_SECONDS_MAX: Final = 900.0


class Pace:
    """When to look next, by a clock that only this process reads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Look at once."""
        self._monotonic = monotonic
        self._next_at = monotonic()
        self._failures = 0

    def is_due(self) -> bool:
        """Return whether to look now; if so, the next look is a while later."""
        now = self._monotonic()
        if now < self._next_at:
            return False
        self._next_at = now + LOOK_SECONDS
        return True

    def succeeded(self) -> None:
        """Forget the failures."""
        self._failures = 0

    def failed(self) -> None:
        """Wait before the next request, longer each time."""
        self._failures += 1
        seconds = min(LOOK_SECONDS * 2**self._failures, RETRY_SECONDS_MAX)
        # At different times by each of several workers.
        self._next_at = self._monotonic() + seconds * random.uniform(0.5, 1)  # noqa: S311
