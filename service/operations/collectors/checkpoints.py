"""What a scrape asks about checkpoints: the database knows, whichever process makes them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from service.core.clock import Clock
from service.evidence.checkpoints.signing import Checkpoints
from service.ledger.codec import happened_at
from service.ledger.sql import queries
from service.operations.metrics import Metrics

_SQL = queries("service.operations.collectors")


def checkpoint_watches(
    checkpoints: Sequence[Checkpoints], clock: Clock
) -> list[Callable[[Metrics], Awaitable[None]]]:
    """Return one watch a ledger; each raises LedgerUnavailable."""
    return [_watch(one, clock) for one in checkpoints]


def _watch(checkpoints: Checkpoints, clock: Clock) -> Callable[[Metrics], Awaitable[None]]:
    async def watch(metrics: Metrics) -> None:
        state = await checkpoints.state()
        metrics.checkpoints(
            checkpoints.ledger.name,
            forked=state.forked,
            archive_failures=state.archive_failures,
        )
        since = state.made_at or await _log_began(checkpoints)
        age = (clock() - since).total_seconds() if since else 0.0
        metrics.last_checkpoint(checkpoints.ledger.name, state.size or 0, max(0.0, age))

    return watch


async def _log_began(checkpoints: Checkpoints) -> datetime | None:
    """Return when the first event happened: without a checkpoint, nothing covers it since then."""
    row = await checkpoints.ledger.database.fetchrow(_SQL.first_event)
    return None if row is None else happened_at(row["state"])
