"""The endpoints for operators: liveness, readiness, metrics."""

import asyncio
from collections.abc import Sequence

from litestar import MediaType, Response, Router, get

from service.http.responses import json_response
from service.ledger.ledger import Ledger
from service.ledger.sequencer import Sequencer
from service.operations.gauges import Collector
from service.operations.metrics import Metrics


def operations_router(
    ledgers: Sequence[Ledger], metrics: Metrics, collectors: Sequence[Collector]
) -> Router:
    """Return the router of `/health/live`, `/health/ready` and `/metrics`.

    The collectors run at every scrape; figures that one cannot read are NaN.
    """
    sequencers = [Sequencer(ledger.database) for ledger in ledgers]

    @get("/health/live")
    async def live() -> Response[bytes]:
        return json_response({"status": "ok"})

    @get("/health/ready")
    async def ready() -> Response[bytes]:
        await asyncio.gather(*(sequencer.reachable() for sequencer in sequencers))
        return json_response({"status": "ok"})

    @get("/metrics")
    async def scrape() -> Response[bytes]:
        gauges = metrics.gauges
        begun = gauges.begin()
        # Concurrently: PostgreSQL may be unavailable, and a scrape's time is short.
        await asyncio.gather(*(collect(gauges) for collect in collectors), return_exceptions=True)
        gauges.end(begun)
        return Response(metrics.exposition(), media_type=MediaType.TEXT)

    return Router("/", route_handlers=[live, ready, scrape])
