"""Gauges that collectors set at each scrape: a figure that could not be read becomes NaN."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, Gauge

UNKNOWN: Final = math.nan
"""No comparison with NaN holds, so an alarm on an unread figure is silent and another one reports
that the scrape failed."""

_GAUGES: Final[Mapping[str, tuple[str, ...]]] = {
    "worker_pool_connections": (
        "Database connections of the process that follows the log, or only reports.",
        "ledger",
        "pool",
        "state",
    ),
    "api_up": ("1 where the API beside this process answers, else 0.",),
    "collector_up": ("1 where a collector of gauges read all of its own, else 0.", "collector"),
    "database_up": ("1 where the scrape could read a ledger, else 0.", "ledger"),
    "clock_offset_seconds": (
        "How far this process's clock is ahead of the database's; negative where it is behind.",
        "ledger",
    ),
    "events_pending": ("Committed events that have no position yet.", "ledger"),
    "oldest_pending_seconds": ("Age of the oldest such event.", "ledger"),
    "log_size": ("Numbered events of a ledger.", "ledger"),
    "head_stalled": ("1 while events wait for a number and the log does not grow.", "ledger"),
    "events_set_aside": ("Events that this service did not write; they have no number.", "ledger"),
    "events_bound": ("1 where an event without a MAC would get no number.", "ledger"),
    "event_keys_open": ("1 where this process's ring opens every event key, else 0.",),
    "service_keys_open": (
        "1 where a process that starts with this one's ring opens the service's own keys, else 0.",
    ),
    "oldest_transaction_seconds": (
        (
            "Age of the oldest open transaction that the service's log-in may see, or how long the "
            "scraped process has seen a replication slot keep an older snapshot."
        ),
    ),
    "mails": ("Mails that are waiting, have failed, or were withheld.", "kind", "state"),
    "oldest_mail_seconds": ("Age of the oldest mail that is waiting.", "kind"),
    "hand_overs": ("Hand-overs to processing that are still to be made.",),
    "oldest_document_check_seconds": ("How long the first of documents to check has waited.",),
    "oldest_hand_over_seconds": ("Age of the oldest of them.",),
    "webhook_endpoints": (
        "Endpoints that take events (active), take none (failing) or were disabled.",
        "ledger",
        "state",
    ),
    "oldest_webhook_seconds": (
        "How long the event has been due that waits longest for an endpoint that does not fail.",
        "ledger",
    ),
    "read_model_position": ("Log position of a read model or subscriber.", "ledger", "name"),
    "read_model_lag_events": ("Committed events it has not handled.", "ledger", "name"),
    "read_model_lag_seconds": ("Age of the oldest unhandled event.", "ledger", "name"),
    "read_model_parked": ("Streams it could not apply and has set aside.", "ledger", "name"),
    "read_model_ahead": ("1 while its position is beyond the end of the log.", "ledger", "name"),
    "ledger_forked": ("1 while the log contradicts what was signed or published.", "ledger"),
    "log_altered": (
        "1 while what the worker verified of the log is not what was hashed or signed.",
        "ledger",
    ),
    "schema_altered": (
        "1 while the ledger's schema is not what migrations of this process's release make.",
        "ledger",
    ),
    "log_actor_faults": (
        "Events that the worker found in the name of somebody who could not act then.",
        "ledger",
    ),
    "tree_nodes_altered": (
        "Kept nodes of the tree that were not the log's, until a whole pass has found none.",
        "ledger",
    ),
    "log_verified_age_seconds": (
        "Since the worker verified the whole log, or since its first event where it never did.",
        "ledger",
    ),
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
    "witness_refusals": (
        "Witnesses that find the log inconsistent with what they have signed of it.",
        "ledger",
    ),
    "unwitnessed_seconds": (
        "Age of the oldest checkpoint after the last one with the quorum of witnesses; else 0.",
        "ledger",
    ),
    "unstamped_seconds": (
        "Age of the oldest checkpoint after the last one with a time stamp; else 0.",
        "ledger",
    ),
    "countersignatures_forged": (
        "Lines of the newest checkpoints that are not of the witness or authority they name.",
        "ledger",
    ),
    "publication_failures": (
        "Checkpoints that could not be made because the archive was unavailable.",
        "ledger",
    ),
    "tiles_size": ("Events under the checkpoint that the log's tiles have.", "ledger"),
    "tiles_unsound": ("1 while the log's tiles, or the log under them, do not hold.", "ledger"),
}
"""Name to text and labels."""


FAULTY: Final[Mapping[str, float]] = {
    "api_up": 0,
    "database_up": 0,
    "event_keys_open": 0,
    "head_stalled": 1,
    "ledger_forked": 1,
    "log_altered": 1,
    "read_model_ahead": 1,
    "schema_altered": 1,
    "service_keys_open": 0,
    "tiles_unsound": 1,
}
"""Gauges that tell by one value that something is wrong."""


Figure = tuple[str, ...]
"""A gauge's name, and the values of its labels."""


class ScrapedGauges:
    """The gauges of scrapes, of which several may run at once: each one's values count for all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = {
            name: Gauge(f"claim_ledger_{name}", text, labels, registry=registry)
            for name, (text, *labels) in _GAUGES.items()
        }
        for name, (_, *labels) in _GAUGES.items():
            if not labels:  # it would be 0 until it is read
                self._gauges[name].set(UNKNOWN)
        self._scrape = 0
        self._latest: dict[Figure, tuple[float, int]] = {}  # bounded by the labels

    def expect(self, figures: Iterable[Figure]) -> None:
        """Make figures unknown until they are read, instead of absent: nobody would miss those."""
        for name, *labels in figures:
            self._show(name, UNKNOWN, *labels)
            self._latest[name, *labels] = (UNKNOWN, self._scrape)

    def begin(self) -> int:
        """Begin a scrape; return its number, for `end`."""
        self._scrape += 1
        return self._scrape

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge to a figure that was read."""
        self._show(name, value, *labels)
        self._latest[name, *labels] = (float(value), self._scrape)

    def end(self, scrape: int) -> None:
        """Make every gauge unknown that was set before this scrape began and not since."""
        for name, (_, set_in) in self._latest.items():
            if set_in < scrape:
                self._show(name[0], UNKNOWN, *name[1:])
                self._latest[name] = (UNKNOWN, set_in)

    def figures(self) -> Mapping[str, Mapping[str, float | None]]:
        """Return each gauge's figures by its labels' values; None where one could not be read."""
        found: dict[str, dict[str, float | None]] = {name: {} for name in _GAUGES}
        for (name, *labels), (value, _) in self._latest.items():
            found[name][" ".join(labels)] = None if math.isnan(value) else value
        return found

    def _show(self, name: str, value: float, *labels: str) -> None:
        shown = self._gauges[name]
        (shown.labels(*labels) if labels else shown).set(value)


class Collector(NamedTuple):
    """What reads figures for a scrape: its name, and which figures it reads each time.

    `collect` sets their gauges, and others that depend on what it finds; raises LedgerError.
    """

    name: str
    figures: Sequence[Figure]
    collect: Callable[[ScrapedGauges], Awaitable[None]]


def of_ledger(ledger: str, *names: str) -> list[Figure]:
    """Return the figures of gauges whose only label is a ledger."""
    return [(name, ledger) for name in names]
