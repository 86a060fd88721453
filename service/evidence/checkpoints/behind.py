"""A standby that has not replayed all that was published: what it lacks, nobody can judge there.

The primary may still have it, or have lost it. Only what the standby has can be verified.
"""

from collections.abc import Mapping

from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint


class Behind(Exception):
    """A standby lacks the published checkpoint of `size` events; `str()` says what to do.

    `reached` is the newest published one that it has, if there is one.
    """

    def __init__(self, ledger: str, size: int, reached: Checkpoint | None) -> None:
        super().__init__(behind({ledger: size}))
        self.ledger = ledger
        self.size = size
        self.reached = reached


def behind(sizes: Mapping[str, int]) -> str:
    """Return what is known on a standby that lacks the published checkpoints of these sizes."""
    lacking = ", ".join(f"{name} ({counted(size, 'event')})" for name, size in sizes.items())
    return (
        f"this server is a standby, and has not replayed what was published of {lacking}: run this "
        "again once it has, or on the primary, which alone shows a loss if a standby stays behind"
    )
