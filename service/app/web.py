"""The web part of the bootstrap, apart from it: the team's commands do without a web framework.

The partners' handlers are reached through the gate alone; RequestMiddleware and, outermost,
AdmissionMiddleware wrap everything.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from service.app.bootstrap import Service
from service.app.pages import pages
from service.http.admission import Admission
from service.http.methods import OptionsRefused
from service.http.rate_limit.limiter import RateLimiter
from service.http.responses import EXCEPTION_HANDLERS
from service.ledger.following.runner import Background
from service.operations.admission_middleware import AdmissionMiddleware
from service.operations.collectors.checkpoints import checkpoint_collector
from service.operations.collectors.database import database_collectors
from service.operations.collectors.ledgers import ledger_collector
from service.operations.gauges import Collector
from service.operations.health import operations_router
from service.operations.metrics import Metrics
from service.operations.request_middleware import RequestMiddleware
from service.pages.shell import on_unrouted
from service.partner_api.authentication import Authenticator
from service.partner_api.docs.reference import reference_router
from service.partner_api.endpoints import endpoints_of
from service.partner_api.gate import API_PATH, PartnerGate
from service.partner_api.routes import partner_handlers
from service.request_log.log import RequestLog
from service.request_log.retention import Retention


def web_app(
    service: Service, metrics: Metrics, background: Background | None
) -> AdmissionMiddleware:
    """Return the web application; with `background` it follows the log in-process too."""
    limiter = RateLimiter(
        redis_url=service.settings.redis_url,
        per_minute=service.settings.rate_limit_per_minute,
        on_degraded=metrics.rate_limit_degraded.set,
        clock=service.clock,
    )

    request_log = RequestLog(
        service.accounts.database,
        {mode: parts.ledger.database for mode, parts in service.modes.items()},
        metrics.request_log_dropped.inc,
    )
    retention = Retention(
        (parts.ledger.database for parts in service.modes.values()), service.clock
    )

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncGenerator[None, None]:
        async with service.opened():
            request_log.start()
            retention.loop.start()
            if background is not None:
                background.start()
            try:
                yield
            finally:
                if background is not None:
                    await background.stop()
                await retention.loop.stop()
                await request_log.stop()
                await limiter.close()

    service.storage_failures.on_failure = metrics.storage_failures.inc
    api = partner_handlers(service.modes)
    gate = PartnerGate(Authenticator(service.partner_list, service.secrets, service.clock), limiter)
    docs_url = f"{service.settings.public_url}/docs"
    app = Litestar(
        route_handlers=[
            Router(API_PATH, route_handlers=list(api), middleware=[gate]),
            operations_router(service.ledgers, metrics, _collectors(service)),
            reference_router(
                endpoints_of(api),
                service.settings.public_url,
                API_PATH,
                service.settings.rate_limit_per_minute,
            ),
            *pages(service, limiter),
        ],
        middleware=[OptionsRefused()],
        # HTTPException is what the framework refuses: unknown paths, wrong methods.
        exception_handlers={**EXCEPTION_HANDLERS, HTTPException: on_unrouted},
        lifespan=[lifespan],
        openapi_config=None,
        request_max_body_size=None,  # service/http/bodies.py bounds, drains and times bodies
        state=State({"docs_url": docs_url}),
        logging_config=None,
    )
    observed = RequestMiddleware(app, metrics, service.clock, service.new_id, request_log)
    admission = Admission(service.deadline_seconds)
    return AdmissionMiddleware(
        observed, admission, API_PATH, docs_url, metrics, service.clock, service.new_id
    )


def _collectors(service: Service) -> Sequence[Collector]:
    clock, ledgers = service.clock, service.ledgers
    return [
        *(ledger_collector(ledger, service.read_models, clock) for ledger in ledgers),
        *database_collectors(
            service.accounts.database, service.modes["live"].ledger.database, clock
        ),
        *(checkpoint_collector(service.checkpoints(ledger.name), clock) for ledger in ledgers),
    ]
