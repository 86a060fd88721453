"""The collector of a ledger: connections, numbering, and the progress of what follows the log."""

from collections.abc import Sequence
from typing import Final

from service.core.clock import Clock
from service.ledger.following.status import AHEAD, HeadWatch, foreign, progress
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.operations.gauges import Collector, ScrapedGauges, of_ledger

_OF_LEDGER: Final = (
    *("database_up", "events_pending", "oldest_pending_seconds", "log_size", "head_stalled"),
    *("events_set_aside", "events_bound", "clock_offset_seconds"),
)
_OF_MODELS: Final = (
    *("read_model_position", "read_model_lag_events", "read_model_lag_seconds"),
    *("read_model_parked", "read_model_ahead"),
)


def ledger_collector(ledger: Ledger, models: Sequence[ReadModel], clock: Clock) -> Collector:
    """Return the collector of one ledger."""
    head_watch = HeadWatch(ledger, clock)  # kept: it notices a stand-still between two scrapes
    name = ledger.name

    async def collect(gauges: ScrapedGauges) -> None:
        for pool_name, pool in ledger.database.pools.items():
            size, idle = pool.connections
            gauges.set("worker_pool_connections", size, name, pool_name, "open")
            gauges.set("worker_pool_connections", idle, name, pool_name, "idle")
        try:
            head = await head_watch.look()
        except Exception:  # raised again: this only notes it
            gauges.set("database_up", 0, name)
            raise
        gauges.set("database_up", 1, name)
        gauges.set("clock_offset_seconds", await _offset(ledger, clock), name)
        gauges.set("events_pending", head.pending, name)
        gauges.set("oldest_pending_seconds", head.oldest_pending_seconds, name)
        gauges.set("log_size", head.size, name)
        gauges.set("head_stalled", head.is_stalled, name)
        aside = await foreign(ledger)
        gauges.set("events_set_aside", aside.set_aside, name)
        gauges.set("events_bound", aside.is_bound, name)
        for one in await progress(ledger, models, head, clock):
            gauges.set("read_model_position", one.position, name, one.name)
            gauges.set("read_model_lag_events", one.lag_events, name, one.name)
            gauges.set("read_model_lag_seconds", one.lag_seconds, name, one.name)
            gauges.set("read_model_parked", one.parked, name, one.name)
            gauges.set("read_model_ahead", one.fault == AHEAD, name, one.name)

    ours = [model.name for model in models if model.ledger.name == name]
    return Collector(
        f"{name}.ledger",
        [
            *of_ledger(name, *_OF_LEDGER),
            *((gauge, name, model) for gauge in _OF_MODELS for model in ours),
            *(
                ("worker_pool_connections", name, pool, state)
                for pool in ledger.database.pools
                for state in ("open", "idle")
            ),
        ],
        collect,
    )


async def _offset(ledger: Ledger, clock: Clock) -> float:
    """Return how many seconds a clock is ahead of the database's, exact to half a round trip."""
    asked = clock()
    theirs = await ledger.now()
    return (asked + (clock() - asked) / 2 - theirs).total_seconds()
