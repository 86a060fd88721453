"""What operators ask: is it alive, is it ready, how is it doing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from litestar import MediaType, Response, Router, get

from service.core.clock import Clock
from service.http.answers import json_answer
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.operations.metrics import Metrics


def operations_router(
    ledgers: list[Ledger],
    metrics: Metrics,
    clock: Clock,
    watches: Sequence[Callable[[Metrics], Awaitable[None]]] = (),
) -> Router:
    """Return the router of `/health/live`, `/health/ready` and `/metrics`.

    Each of `watches` notes more in the metrics, at every scrape; what it cannot find out is NaN.
    """
    sequencers = [Sequencer(ledger.database) for ledger in ledgers]

    @get("/health/live", opt={"summary": "The process runs."})
    async def live() -> Response[bytes]:
        return json_answer({"status": "ok"})

    @get("/health/ready", opt={"summary": "Every ledger can be reached."})
    async def ready() -> Response[bytes]:
        await asyncio.gather(*(sequencer.reachable() for sequencer in sequencers))
        return json_answer({"status": "ok"})

    @get("/metrics", opt={"summary": "Prometheus metrics."})
    async def scrape() -> Response[bytes]:
        for ledger in ledgers:
            metrics.pool(ledger.name, *ledger.database.connections)
        begun = metrics.begin_scrape()
        lags, _ = await asyncio.gather(  # together: PostgreSQL may be away, and time is short
            asyncio.gather(*(one.lag() for one in sequencers), return_exceptions=True),
            asyncio.gather(*(watch(metrics) for watch in watches), return_exceptions=True),
        )
        for ledger, lag in zip(ledgers, lags, strict=True):
            metrics.database_up(ledger.name, up=not isinstance(lag, BaseException))
            if not isinstance(lag, BaseException):
                age = (clock() - lag.oldest_at).total_seconds() if lag.oldest_at else 0.0
                metrics.lag(ledger.name, lag.waiting, max(0.0, age), lag.size)
        metrics.end_scrape(begun)
        return Response(metrics.exposition(), media_type=MediaType.TEXT)

    return Router("/", route_handlers=[live, ready, scrape])
