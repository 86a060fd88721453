"""Gauges that collectors set at each scrape: a figure that could not be read becomes NaN."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

UNKNOWN: Final = math.nan
"""No comparison with NaN holds, so an alarm on an unread figure is silent and another one reports
that the scrape failed. Where several processes share their metrics no series can be removed."""

_GAUGES: Final[Mapping[str, tuple[str, ...]]] = {
    "pool_connections": ("Database connections of a process.", "ledger", "pool", "state"),
    "database_up": ("1 where the scrape could read a ledger, else 0.", "ledger"),
    "events_pending": ("Committed events that have no position yet.", "ledger"),
    "oldest_pending_seconds": ("Age of the oldest such event.", "ledger"),
    "log_size": ("Numbered events of a ledger.", "ledger"),
    "head_stalled": ("1 while events wait for a number and the log does not grow.", "ledger"),
    "oldest_transaction_seconds": (
        "Age of the oldest open transaction that the service's log-in may see.",
    ),
    "mails": ("Mails that are waiting or have failed.", "kind", "state"),
    "oldest_mail_seconds": ("Age of the oldest mail that is waiting.", "kind"),
    "hand_overs": ("Hand-overs to processing that are still to be made.",),
    "oldest_hand_over_seconds": ("Age of the oldest of them.",),
    "read_model_position": ("Log position of a read model or subscriber.", "ledger", "name"),
    "read_model_lag_events": ("Committed events it has not handled.", "ledger", "name"),
    "read_model_lag_seconds": ("Age of the oldest unhandled event.", "ledger", "name"),
    "read_model_parked": ("Streams it could not apply and has set aside.", "ledger", "name"),
    "read_model_ahead": ("1 while its position is beyond the end of the log.", "ledger", "name"),
    "ledger_forked": ("1 while the log contradicts what was signed or published.", "ledger"),
    "checkpoint_size": ("Events under the last checkpoint; 0 where there is none.", "ledger"),
    "checkpoint_age_seconds": (
        (
            "Age of the last checkpoint, or of the first event without one where there is none or "
            "it is dated ahead; alarming only where the log has grown since."
        ),
        "ledger",
    ),
    "checkpoint_ahead_seconds": (
        "How far the last checkpoint is dated ahead of the scraped process's clock; else 0.",
        "ledger",
    ),
    "publication_failures": (
        "Checkpoints that could not be made because the archive was unavailable.",
        "ledger",
    ),
}
"""Name to text and labels."""


def gauge(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Gauge:
    """Return a new gauge; where several processes set it, the latest value counts."""
    full = f"claim_ledger_{name}"
    return Gauge(full, text, labels, registry=registry, multiprocess_mode="mostrecent")


class ScrapedGauges:
    """The gauges of scrapes, of which several may run at once: each one's values count for all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the gauges."""
        self._gauges = {name: gauge(registry, name, *row) for name, row in _GAUGES.items()}
        for name, (_, *labels) in _GAUGES.items():
            if not labels:  # it would be 0 until it is read
                self._gauges[name].set(UNKNOWN)
        self._scrape = 0
        self._set_in: dict[Gauge, int] = {}  # bounded by the gauges' labels

    def begin(self) -> int:
        """Begin a scrape; return its number, for `end`."""
        self._scrape += 1
        return self._scrape

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge to a figure that was read."""
        child = self._gauges[name]
        if labels:
            child = child.labels(*labels)
        child.set(value)
        self._set_in[child] = self._scrape

    def end(self, scrape: int) -> None:
        """Make every gauge unknown that was set before this scrape began and not since."""
        for child, set_in in self._set_in.items():
            if set_in < scrape:
                child.set(UNKNOWN)


Collector = Callable[[ScrapedGauges], Awaitable[None]]
"""Reads figures for a scrape and sets their gauges; raises LedgerUnavailable."""
