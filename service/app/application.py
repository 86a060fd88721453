"""The ASGI application: routers behind the gate, and around everything the observer."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar, Response, Router
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler

from service.core.clock import Clock
from service.core.ids import NewId
from service.http.bodies import AnyRequest
from service.http.methods import OptionsRefused
from service.http.responses import EXCEPTION_HANDLERS
from service.operations.metrics import Metrics
from service.operations.request_middleware import RequestMiddleware
from service.partner_api.gate import API_PATH, PartnerGate
from service.request_log.log import RequestLog

OnHttpException = Callable[[AnyRequest, HTTPException], Response[bytes]]
Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def make_app(
    *,
    partner_handlers: Sequence[HTTPRouteHandler],
    open_routers: Sequence[Router],
    gate: PartnerGate,
    metrics: Metrics,
    public_url: str,
    clock: Clock,
    new_id: NewId,
    lifespan: Lifespan,
    request_log: RequestLog,
    unrouted: OnHttpException,
) -> RequestMiddleware:
    """Put the application together. `partner_handlers` are reached through the gate alone.

    `unrouted` answers what the framework refuses: unknown paths, wrong methods.
    """
    app = Litestar(
        route_handlers=[
            Router(API_PATH, route_handlers=list(partner_handlers), middleware=[gate]),
            *open_routers,
        ],
        middleware=[OptionsRefused()],
        exception_handlers={**EXCEPTION_HANDLERS, HTTPException: unrouted},
        lifespan=[lifespan],
        openapi_config=None,
        request_max_body_size=None,  # service/http/bodies.py bounds, drains and times bodies
        state=State({"docs_url": f"{public_url}/docs"}),
        logging_config=None,
    )
    return RequestMiddleware(app, metrics, clock, new_id, request_log)
