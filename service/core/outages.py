"""How often a loop logs what keeps it waiting."""

from time import monotonic
from typing import Final

TELL_SECONDS: Final = 60.0
"""Between two lines about faults of one type that last."""


class Outages:
    """The faults of a loop, of which each is logged when it begins and once a minute."""

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}

    def is_due(self, why: str) -> bool:
        """Return whether to log a fault: of each type the first, and then one a minute."""
        now = monotonic()
        if now - self._told_at.get(why, -TELL_SECONDS) < TELL_SECONDS:
            return False
        self._told_at[why] = now
        return True

    def end(self) -> bool:
        """Return whether faults were logged, which have ended now."""
        was_told = bool(self._told_at)
        self._told_at.clear()
        return was_told
