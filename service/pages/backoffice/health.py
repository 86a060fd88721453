"""`/backoffice/health`: does the log grow, do read models follow, when was it signed."""

from collections.abc import Sequence
from typing import NamedTuple

from litestar import Response, Router, get

from service.core.clock import Clock
from service.evidence.checkpoints.signing import Checkpoints, CheckpointState
from service.http.bodies import AnyRequest
from service.ledger.following.status import Head, HeadWatch, Progress, progress
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.pages.backoffice.frame import BackofficeContext, staff_of


class Watched(NamedTuple):
    """A ledger, and what tells how it fares."""

    ledger: Ledger
    head: HeadWatch
    checkpoints: Checkpoints


class Health(NamedTuple):
    """How a ledger fares: its log, what follows it, its checkpoints."""

    ledger: str
    head: Head
    progress: Sequence[Progress]
    signed: CheckpointState


def health_router(
    desk: BackofficeContext, watched: Sequence[Watched], models: Sequence[ReadModel], clock: Clock
) -> Router:
    """Return the router of the service's health."""

    @get("/backoffice/health", opt={"page": "staff"})
    async def health(request: AnyRequest) -> Response[bytes]:
        await staff_of(request, desk.staff)
        ledgers = [await _health(one, models, clock) for one in watched]
        return desk.page(request, "/backoffice/health", "health.html", at=clock(), ledgers=ledgers)

    return Router("/", route_handlers=[health])


async def _health(one: Watched, models: Sequence[ReadModel], clock: Clock) -> Health:
    # Looks twice, a second apart, where events wait for long: only then can it tell.
    head = await one.head.watch()
    rows = await progress(one.ledger, models, head, clock)
    return Health(one.ledger.name, head, rows, await one.checkpoints.state())
