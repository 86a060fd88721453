"""The ASGI application: routers behind the gate, and around everything the observer."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar, Response, Router
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from service.clock import Clock
from service.ids import NewId
from service.requests.notes import RequestNotes
from service.web.answers import EXCEPTION_HANDLERS
from service.web.body import AnyRequest
from service.web.gate import PartnerGate
from service.web.methods import OptionsRefused
from service.web.metrics import Metrics
from service.web.observe import Observer

API_PATH = "/v1"
"""The interface version is part of the base address (contract section 9)."""

OnHttpException = Callable[[AnyRequest, HTTPException], Response[bytes]]
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def make_app(
    *,
    partner_routers: Sequence[Router],
    open_routers: Sequence[Router],
    gate: PartnerGate,
    metrics: Metrics,
    public_url: str,
    clock: Clock,
    new_id: NewId,
    lifespan: Lifespan,
    notes: RequestNotes,
    unrouted: OnHttpException,
) -> Observer:
    """Put the application together. `partner_routers` are reached through the gate alone.

    `unrouted` answers what the framework refuses: unknown paths, wrong methods.
    """
    app = Litestar(
        route_handlers=[
            Router(API_PATH, route_handlers=list(partner_routers), middleware=[gate]),
            *open_routers,
        ],
        middleware=[OptionsRefused()],
        exception_handlers={**EXCEPTION_HANDLERS, HTTPException: unrouted},
        lifespan=[lifespan],
        openapi_config=None,
        request_max_body_size=None,  # service/web/body.py bounds, drains and times bodies
        state=State({"docs_url": f"{public_url}/docs"}),
        logging_config=None,
    )
    return Observer(app, metrics, clock, new_id, notes)
