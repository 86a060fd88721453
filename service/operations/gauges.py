"""Gauges that collectors set at each scrape: a figure that could not be read becomes NaN."""

import math
from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

UNKNOWN: Final = math.nan
"""No comparison with NaN holds, so an alarm on an unread figure is silent and another one reports
that the scrape failed. Where several processes share their metrics no series can be removed."""


def gauge(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Gauge:
    """Return a new gauge; where several processes set it, the latest value counts."""
    full = f"claim_ledger_{name}"
    return Gauge(full, text, labels, registry=registry, multiprocess_mode="mostrecent")


class ScrapedGauges:
    """The gauges of scrapes, of which several may run at once: each one's values count for all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register the gauges; `ledger`, `name`, `kind` and `state` are labels."""
        self._registry = registry
        self._scrape = 0
        self._set_in: dict[Gauge, int] = {}  # bounded by the gauges' labels
        self.pool = self._new(
            "pool_connections", "Database connections of a process.", "ledger", "state"
        )
        self.database_up = self._new(
            "database_up", "1 where the scrape could read a ledger, else 0.", "ledger"
        )
        self.events_pending = self._new(
            "events_pending", "Committed events that have no position yet.", "ledger"
        )
        self.oldest_pending = self._new(
            "oldest_pending_seconds", "Age of the oldest such event.", "ledger"
        )
        self.log_size = self._new("log_size", "Numbered events of a ledger.", "ledger")
        self.head_stalled = self._new(
            "head_stalled", "1 while events wait for a number and the log does not grow.", "ledger"
        )
        self.oldest_transaction = self._new(
            "oldest_transaction_seconds",
            "Age of the oldest open transaction that the service's log-in may see.",
        )
        self.oldest_transaction.set(UNKNOWN)  # without labels it would be 0 until it is read
        self.mails = self._new("mails", "Mails that are waiting or have failed.", "kind", "state")
        self.oldest_mail = self._new(
            "oldest_mail_seconds", "Age of the oldest mail that is waiting.", "kind"
        )
        self.position = self._read_model("position", "Log position of a read model or subscriber.")
        self.lag_events = self._read_model("lag_events", "Committed events it has not handled.")
        self.lag_seconds = self._read_model("lag_seconds", "Age of the oldest unhandled event.")
        self.parked = self._read_model("parked", "Streams it could not apply and has set aside.")
        self.ahead = self._read_model("ahead", "1 while its position is beyond the end of the log.")
        self.forked = self._new(
            "ledger_forked", "1 while the log contradicts what was signed or published.", "ledger"
        )
        self.checkpoint_size = self._new(
            "checkpoint_size", "Events under the last checkpoint; 0 where there is none.", "ledger"
        )
        self.checkpoint_age = self._new(
            "checkpoint_age_seconds",
            "Age of the last checkpoint, or of the log where there is none; alarming only where the"
            " log has grown since.",
            "ledger",
        )
        self.archive_failures = self._new(
            "publication_failures",
            "Checkpoints that could not be made because the archive was unavailable.",
            "ledger",
        )

    def begin(self) -> int:
        """Begin a scrape; return its number, for `end`."""
        self._scrape += 1
        return self._scrape

    def set(self, gauge: Gauge, value: float, *labels: str) -> None:
        """Set a gauge to a figure that was read."""
        child = gauge.labels(*labels) if labels else gauge
        child.set(value)
        self._set_in[child] = self._scrape

    def end(self, scrape: int) -> None:
        """Make every gauge unknown that was set before this scrape began and not since."""
        for child, set_in in self._set_in.items():
            if set_in < scrape:
                child.set(UNKNOWN)

    def _new(self, name: str, text: str, *labels: str) -> Gauge:
        return gauge(self._registry, name, text, *labels)

    def _read_model(self, name: str, text: str) -> Gauge:
        return self._new(f"read_model_{name}", text, "ledger", "name")


Collector = Callable[[ScrapedGauges], Awaitable[None]]
"""Reads figures for a scrape and sets their gauges; raises LedgerUnavailable."""
