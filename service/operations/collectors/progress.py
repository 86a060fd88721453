"""What a scrape asks about read models and subscribers: how far each is, whether the log grows."""

from collections.abc import Awaitable, Callable, Sequence

from service.core.clock import Clock
from service.ledger.following.status import HeadWatch, progress
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.operations.metrics import Metrics


def progress_watches(
    ledgers: Sequence[Ledger], models: Sequence[ReadModel], clock: Clock
) -> Sequence[Callable[[Metrics], Awaitable[None]]]:
    """Return one watch a ledger; each raises LedgerUnavailable."""
    return [_watch(ledger, models, clock) for ledger in ledgers]


def _watch(
    ledger: Ledger, models: Sequence[ReadModel], clock: Clock
) -> Callable[[Metrics], Awaitable[None]]:
    head_watch = HeadWatch(ledger, clock)  # kept: between two scrapes it notices a stand-still

    async def watch(metrics: Metrics) -> None:
        head = await head_watch.look()
        metrics.head_stalled(ledger.name, stalled=head.is_stalled)
        for one in await progress(ledger, models, head, clock):
            metrics.read_model(
                ledger.name,
                one.name,
                position=one.position,
                lag_events=one.lag_events,
                lag_seconds=one.lag_seconds,
                parked=one.parked,
                ahead=one.fault is not None,
            )

    return watch
