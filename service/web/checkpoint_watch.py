"""What a scrape asks about checkpoints: the database knows, whichever process makes them."""

from collections.abc import Awaitable, Callable, Sequence

from service.audit.checkpoints import Checkpoints
from service.clock import Clock
from service.web.metrics import Metrics


def checkpoint_watches(
    checkpoints: Sequence[Checkpoints], clock: Clock
) -> list[Callable[[Metrics], Awaitable[None]]]:
    """Answer one watch a ledger; each raises LedgerUnavailable."""
    return [_watch(one, clock) for one in checkpoints]


def _watch(checkpoints: Checkpoints, clock: Clock) -> Callable[[Metrics], Awaitable[None]]:
    async def watch(metrics: Metrics) -> None:
        state = await checkpoints.state()
        metrics.checkpoints(
            checkpoints.ledger.name,
            forked=state.forked,
            publication_failures=state.publication_failures,
        )
        if state.size is not None and state.made_at is not None:
            age = (clock() - state.made_at).total_seconds()
            metrics.last_checkpoint(checkpoints.ledger.name, state.size, max(0.0, age))

    return watch
