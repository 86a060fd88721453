"""The progress of a ledger's background verification, bound to the service by a MAC.

Whoever has the ledger's login can write that row, or restore an earlier version of it. A row
without its MAC is therefore ignored: the next slice begins again, and such a row stops no signing.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from service.core.ids import stream_id
from service.ledger.database import Row
from service.ledger.event_macs import EventKeys, event_digest

FAULTY_SECONDS: Final = 600.0
"""After a finding, a pass begins so soon: what was mended is to count as that."""
_TOPIC: Final = "LogVerification"


class LogPass(NamedTuple):
    """The position of the present pass, and the last one's result. Times are None before one."""

    position: int
    tree: bytes
    began_at: datetime | None
    finished_at: datetime | None
    size: int
    fault_position: int | None
    fault: str | None

    def is_resting(self, now: datetime, seconds: float) -> bool:
        """Return whether no pass goes on, and none has to begin yet."""
        if self.position or self.began_at is None or self.finished_at is None:
            return False
        wait = min(seconds, FAULTY_SECONDS) if self.fault is not None else seconds
        return self.began_at <= now < self.began_at + timedelta(seconds=wait)

    def mac(self, ledger: str, keys: EventKeys) -> bytes:
        """Return the MAC, which shows that a process of the service wrote the row."""
        return keys.mac(_stream(ledger), 1, _TOPIC, self._state())

    def digest(self, ledger: str) -> bytes:
        """Return the digest that the MAC covers."""
        return event_digest(_stream(ledger), 1, _TOPIC, self._state())

    def _state(self) -> bytes:
        return msgspec.json.encode(list(self))


NEW: Final = LogPass(0, b"", None, None, 0, None, None)
"""Before the first pass."""


def noted(row: Row, ledger: str, keys: EventKeys) -> LogPass | None:
    """Return what a row holds; None where the service did not note that."""
    *columns, mac = row
    kept = LogPass(*columns)
    if mac is None and kept == NEW:
        return NEW
    return kept if mac is not None and keys.holds(kept.digest(ledger), mac) else None


def _stream(ledger: str) -> UUID:
    return stream_id("log-verification", ledger)
