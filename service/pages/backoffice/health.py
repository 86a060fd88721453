"""`/backoffice/health`: the ledgers, what follows them, and their checkpoints."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from litestar import get

from service.core.clock import Clock
from service.evidence.checkpoints.signing import Checkpoints
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.following.status import HeadWatch, progress
from service.ledger.ledger import Ledger
from service.ledger.read_model import ReadModel
from service.pages.backoffice.frame import backoffice_page
from service.pages.site_map import Html, Page


class Watched(NamedTuple):
    """A ledger, with what its health is read from."""

    ledger: Ledger
    head: HeadWatch
    checkpoints: Checkpoints


def health_router(
    watched: Sequence[Watched], models: Sequence[ReadModel], clock: Clock
) -> OneOffRouter:
    """Return the router of the service's health."""

    @get("/health", opt={"page": Page("staff", "backoffice.nav.health")})
    async def health(request: AnyRequest) -> Html:
        """Show the logs, what follows them, and the checkpoints."""
        ledgers = [await _health(one, models, clock) for one in watched]
        return backoffice_page(request, "health.html", at=clock(), ledgers=ledgers)

    return OneOffRouter("/", route_handlers=[health])


async def _health(
    watched: Watched, models: Sequence[ReadModel], clock: Clock
) -> Mapping[str, object]:
    # Looks twice, a second apart, where events have waited long: one look cannot show a stall.
    head = await watched.head.watch()
    return {
        "ledger": watched.ledger.name,
        "head": head,
        "progress": await progress(watched.ledger, models, head, clock),
        "signed": await watched.checkpoints.state(),
    }
