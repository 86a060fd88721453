"""The collector of checkpoints, whichever process makes them: the database knows their state."""

from service.core.clock import Clock
from service.evidence.checkpoints.signing import Checkpoints
from service.ledger.codec import happened_at
from service.ledger.sql import queries
from service.operations.gauges import Collector, ScrapedGauges

_SQL = queries("service.operations.collectors")


def checkpoint_collector(checkpoints: Checkpoints, clock: Clock) -> Collector:
    """Return the collector of one ledger's checkpoints."""
    name = checkpoints.ledger.name

    async def collect(gauges: ScrapedGauges) -> None:
        state = await checkpoints.state()
        gauges.set("ledger_forked", state.forked, name)
        gauges.set("publication_failures", state.archive_failures, name)
        now, size = clock(), state.size or 0
        ahead, since = state.ahead_of(now), state.made_at
        if since is None or ahead:  # a date that says nothing: since when is an event not covered?
            event = await checkpoints.ledger.database.reads.fetchrow(_SQL.event_after, size)
            since = happened_at(event["state"]) if event else None
        age = (now - since).total_seconds() if since else 0.0
        gauges.set("checkpoint_size", size, name)
        gauges.set("checkpoint_ahead_seconds", ahead.total_seconds(), name)
        gauges.set("checkpoint_age_seconds", max(0.0, age), name)

    return collect
