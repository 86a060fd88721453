"""The health that load balancers ask for: whether a process lives, and whether it can work."""

import asyncio
from collections.abc import Sequence

from litestar import Response, get

from service.core.shared import Shared
from service.http.responses import json_response
from service.http.router import OneOffRouter
from service.ledger.ledger import Ledger
from service.ledger.service_keys import ServiceKeyStore
from service.operations.addresses import LIVE, READY


def health_router(ledgers: Sequence[Ledger], secrets: ServiceKeyStore) -> OneOffRouter:
    """Return the router of both.

    Anybody can ask, so however many do at once, each ledger is asked once.

    A process is not ready before it has opened the service's own keys, which every request needs:
    its ring of master keys may lack theirs. Afterwards it has them in memory, and whatever somebody
    writes into their tables alone takes no running process out. One that may not write, as a log
    names an event key that it cannot open, is not ready any more.
    """

    async def reach_one(ledger: Ledger) -> None:
        await ledger.reachable()
        (await ledger.binding()).refuse_overtaken()

    async def reach() -> None:
        await asyncio.gather(secrets.get(), *(reach_one(ledger) for ledger in ledgers))

    reached = Shared(reach)

    @get(LIVE)
    async def live() -> Response[bytes]:
        return json_response({"status": "ok"})

    @get(READY)
    async def ready() -> Response[bytes]:
        await reached.get()
        return json_response({"status": "ok"})

    return OneOffRouter("/", route_handlers=[live, ready])
