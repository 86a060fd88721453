"""The collector of checkpoints and of verifying the log, whichever process does either."""

from datetime import datetime
from typing import Final

from service.core.clock import Clock
from service.evidence.checkpoints.finding import beside_finding, finding
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.log_findings import ACTORS, TREE_NODES
from service.evidence.tiles.writer import tiles_state
from service.ledger.codec import happened_at
from service.ledger.sql import queries
from service.operations.gauges import Collector, ScrapedGauges, of_ledger

_OF_LEDGER: Final = (
    *("log_altered", "log_actor_faults", "tree_nodes_altered", "log_verified_age_seconds"),
    *("ledger_forked", "publication_failures"),
    *("checkpoint_size", "checkpoint_ahead_seconds", "checkpoint_age_seconds"),
)
_OF_TILES: Final = ("tiles_size", "tiles_unsound")

_SQL = queries("service.operations.collectors")


def checkpoint_collector(checkpoints: Checkpoints, clock: Clock, *, has_tiles: bool) -> Collector:
    """Return the collector of one ledger's checkpoints, and of its tiles where it has any."""
    name = checkpoints.ledger.name

    async def happened_after(position: int) -> datetime | None:
        event = await checkpoints.ledger.database.reads.fetchrow(_SQL.event_after, position)
        return happened_at(event["state"]) if event else None

    async def collect(gauges: ScrapedGauges) -> None:
        found = await finding(checkpoints.ledger)
        gauges.set("log_altered", found.fault is not None, name)
        beside = await beside_finding(checkpoints.ledger)
        gauges.set("log_actor_faults", beside[ACTORS].faults, name)
        gauges.set("tree_nodes_altered", beside[TREE_NODES].faults, name)
        at = found.verified_at or await happened_after(0)
        age = (clock() - at).total_seconds() if at else 0.0
        gauges.set("log_verified_age_seconds", max(0.0, age), name)
        state = await checkpoints.state()
        gauges.set("ledger_forked", state.forked, name)
        gauges.set("publication_failures", state.archive_failures, name)
        now, size = clock(), state.size or 0
        ahead, since = state.ahead_of(now), state.made_at
        if since is None or ahead:  # a date that says nothing: since when is an event not covered?
            since = await happened_after(size)
        age = (now - since).total_seconds() if since else 0.0
        gauges.set("checkpoint_size", size, name)
        gauges.set("checkpoint_ahead_seconds", ahead.total_seconds(), name)
        gauges.set("checkpoint_age_seconds", max(0.0, age), name)
        if has_tiles:
            tiles = await tiles_state(checkpoints.ledger.database)
            gauges.set("tiles_size", tiles.size or 0, name)
            gauges.set("tiles_unsound", tiles.unsound, name)

    names = (*_OF_LEDGER, *_OF_TILES) if has_tiles else _OF_LEDGER
    return Collector(f"{name}.checkpoints", of_ledger(name, *names), collect)
