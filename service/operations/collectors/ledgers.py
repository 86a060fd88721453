"""Collectors of ledgers: connections, numbering, and the progress of what follows the log."""

from collections.abc import Sequence

from service.core.clock import Clock
from service.ledger.following.status import HeadWatch, progress
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.operations.gauges import Collector, ScrapedGauges


def ledger_collectors(
    ledgers: Sequence[Ledger], models: Sequence[ReadModel], clock: Clock
) -> list[Collector]:
    """Return a collector for each ledger."""
    return [_collector(ledger, models, clock) for ledger in ledgers]


def _collector(ledger: Ledger, models: Sequence[ReadModel], clock: Clock) -> Collector:
    head_watch = HeadWatch(ledger, clock)  # kept: it notices a stand-still between two scrapes
    name = ledger.name

    async def collect(gauges: ScrapedGauges) -> None:
        size, idle = ledger.database.connections
        gauges.set(gauges.pool, size, name, "open")
        gauges.set(gauges.pool, idle, name, "idle")
        try:
            head = await head_watch.look()
        except Exception:
            gauges.set(gauges.database_up, 0, name)
            raise
        gauges.set(gauges.database_up, 1, name)
        gauges.set(gauges.events_pending, head.pending, name)
        gauges.set(gauges.oldest_pending, head.oldest_pending_seconds, name)
        gauges.set(gauges.log_size, head.size, name)
        gauges.set(gauges.head_stalled, head.is_stalled, name)
        for one in await progress(ledger, models, head, clock):
            gauges.set(gauges.position, one.position, name, one.name)
            gauges.set(gauges.lag_events, one.lag_events, name, one.name)
            gauges.set(gauges.lag_seconds, one.lag_seconds, name, one.name)
            gauges.set(gauges.parked, one.parked, name, one.name)
            gauges.set(gauges.ahead, one.fault is not None, name, one.name)

    return collect
