"""Checkpoints on schedule, as a worker makes them for one ledger."""

import time
from collections.abc import Callable
from typing import Final

import structlog

from service.archive.port import ArchiveUnavailable
from service.evidence.checkpoints.lineage import lineages
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.published import ArchiveEmpty
from service.evidence.checkpoints.signing import Checkpoints, KeyMissing

RETRY_SECONDS: Final = 30.0
"""After a fault; sooner if checkpoints are made more often."""
_REST: Final = 0.9
"""Of the interval: the time that making one takes must not delay every second one."""

log = structlog.get_logger()


class Schedule:
    """Makes a ledger's checkpoints. Several workers make no more of them than one does.

    At the start, it compares the log with its archive, so that a restore that lost events is
    noticed at once. A ledger without any checkpoint gets its first one an interval later.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`seconds` is the interval; `monotonic` a clock that only this process reads."""
        self._checkpoints = checkpoints
        self._seconds = seconds
        self._monotonic = monotonic
        self._next_at = monotonic()
        self._first_at = self._next_at + seconds

    async def step(self) -> int | None:
        """Return 1 if a checkpoint was signed; None: none is due, and this only read a clock."""
        now = self._monotonic()
        if now < self._next_at:
            return None
        self._next_at = now + min(RETRY_SECONDS, self._seconds)
        if now < self._first_at and not await lineages(self._checkpoints.ledger):
            return 0
        ledger = self._checkpoints.ledger.name
        try:
            made = await self._checkpoints.make(rest_seconds=self._seconds * _REST)
        except LedgerForked:
            return 0  # an error was logged
        except KeyMissing:
            log.error("checkpoint lacks a key", ledger=ledger)  # noqa: TRY400 - no fault of code
            return 0
        except ArchiveUnavailable as error:  # both are counted, and raise an alarm
            if isinstance(error, ArchiveEmpty):
                log.error("archive is empty", ledger=ledger)  # noqa: TRY400 - as above
            else:
                log.warning("archive unavailable", ledger=ledger)
            return 0
        self._next_at = now + self._seconds
        return int(made.is_new)
