"""Projectors that do not do what they should, in whichever process they are."""

import time
from pathlib import Path

from projections.claim_list.projector import ClaimListProjector


class Stalling(ClaimListProjector):
    """Makes the rows of `claim_list` until the event at a position, where it says so and stops."""

    def __init__(self, stall_at: int, reached: Path) -> None:
        self._stall_at = stall_at
        self._reached = reached

    def project(self, recorded):
        """Return the rows, or never."""
        if recorded.position == self._stall_at:
            self._reached.touch()
            time.sleep(3600)
        return super().project(recorded)


class Failing(ClaimListProjector):
    """Fails at each event."""

    def project(self, recorded):
        """Raise."""
        raise ValueError(recorded.position)
