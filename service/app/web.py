"""The web part of the bootstrap, apart from it: the team's commands do without a web framework.

The partners' handlers are reached through the gate alone; RequestMiddleware, AdmissionMiddleware,
AddressMiddleware and, outermost, BodyMiddleware wrap everything.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp

from service.app.bootstrap import Service
from service.app.pages import backoffice_pages, pages, unrouted
from service.app.tracing import traced_app, traces_for
from service.core.loops import Loop
from service.evidence.proofs.serving import ConsistencyProofs, consistency_route
from service.evidence.tiles.serving import PATH as LOG_PATH
from service.evidence.tiles.serving import LogTiles, tiles_router
from service.http.admission import Admission
from service.http.connections import ConnectionWatch
from service.http.every_answer import every_answer
from service.http.hosts import Hosts
from service.http.methods import OptionsRefused
from service.http.rate_limit.limiter import RateLimiter
from service.http.responses import EXCEPTION_HANDLERS
from service.http.router import OneOffRouter
from service.http.tracebacks import answered
from service.ledger.following.runner import Background
from service.operations.address_middleware import AddressMiddleware, wrong_host
from service.operations.addresses import HEALTH
from service.operations.admission_middleware import REFUSAL, AdmissionMiddleware
from service.operations.body_middleware import BodyMiddleware
from service.operations.by_host import ByHost
from service.operations.by_path import ByPath
from service.operations.early_refusal import EarlyRefusal
from service.operations.health import health_router
from service.operations.metrics import Metrics
from service.operations.request_middleware import RequestMiddleware
from service.pages.unrouted import Unrouted
from service.partner_api.authentication import Authenticator, TracedAuthenticator
from service.partner_api.docs.reference import reference_router
from service.partner_api.docs.site import HOME, site_router
from service.partner_api.endpoints import endpoints_of, no_such_path
from service.partner_api.gate import API_PATH, PartnerGate
from service.partner_api.routes import partner_handlers
from service.partners.rebinding import KeyRebinding
from service.request_log.log import RequestLog
from service.request_log.retention import Retention

DOCS_PATH: Final = "/docs"
POOLS_SECONDS: Final = 5.0
"""Between two looks at how many database connections are open."""


def web_app(
    service: Service,
    metrics: Metrics,
    background: Background | None,
    watch: ConnectionWatch | None = None,
    *,
    late_pages: bool = False,
) -> BodyMiddleware:
    """Return the web application; with `background` it follows the log in-process too.

    `watch` looks after the connections of the server around it. `late_pages`: what people visit,
    most of the routes, is made when somebody does.
    """
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
        (parts.ledger.database for parts in service.modes.values()),
        service.clock,
        service.sessions.delete_expired,
    )

    traces = traces_for(service.settings, "api")
    loops = [_pools(service, metrics), *([watch.loop] if watch else [])]

    @asynccontextmanager
    async def lifespan(_app: Litestar) -> AsyncGenerator[None, None]:
        async with service.opened():
            request_log.start()
            for loop in (retention.loop, *loops):
                loop.start()
            if background is not None:
                background.start()
            try:
                yield
            finally:
                if background is not None:
                    await background.stop()
                for loop in (*loops, retention.loop):
                    await loop.stop()
                await request_log.stop()
                await limiter.close()
                if traces is not None:
                    await asyncio.to_thread(traces.close)

    service.storage_failures.on_failure = metrics.storage_failures.inc
    api = partner_handlers(service.modes, service.settings.public_url)
    authenticates = Authenticator if traces is None else TracedAuthenticator
    authenticator = authenticates(
        service.partner_list, service.secrets, service.clock, KeyRebinding(service.partners)
    )
    gate = PartnerGate(authenticator, limiter)
    public_url, backoffice_url = service.settings.public_url, service.settings.backoffice_url
    docs_url = f"{public_url}{DOCS_PATH}"
    endpoints = endpoints_of(api)
    nothing = unrouted(service, public_url, no_such_path=no_such_path(endpoints, API_PATH))
    for_programs = Litestar(
        [
            OneOffRouter(API_PATH, route_handlers=list(api), middleware=[gate]),
            health_router(service.ledgers, service.secrets),
            reference_router(
                endpoints,
                public_url,
                API_PATH,
                service.settings.rate_limit_per_minute,
                HOME if service.settings.site_path else None,
            ),
            site_router(service.settings.site_path, public_url),
            _log_router(service),
        ],
        lifespan=[lifespan],
        **_common(docs_url, nothing),
    )
    by_path = ByPath(
        for_programs,
        *(API_PATH, DOCS_PATH, HEALTH, LOG_PATH),
        make_other=lambda: Litestar(pages(service, limiter), **_common(docs_url, nothing)),
    )
    if not late_pages:
        _ = by_path.other
    routed: ASGIApp = by_path
    if backoffice_url is not None:
        apart = _backoffice_app(service, limiter, backoffice_url, docs_url)
        routed = ByHost(by_path, apart, Hosts(backoffice_url))
    common = every_answer(public_url)
    refuse = partial(
        EarlyRefusal, docs_url=docs_url, common=common, clock=service.clock, new_id=service.new_id
    )
    observed: ASGIApp = RequestMiddleware(
        routed, metrics, service.clock, service.new_id, request_log, common
    )
    if traces is not None:
        observed = traced_app(observed, traces)
    admission = Admission(service.deadline_seconds)
    admitted = AdmissionMiddleware(observed, admission, API_PATH, refuse(REFUSAL), metrics)
    addressed = AddressMiddleware(
        admitted,
        Hosts(public_url, *filter(None, [backoffice_url])),
        API_PATH,
        refuse(wrong_host(public_url)),
        metrics,
    )
    return BodyMiddleware(addressed)


def _backoffice_app(service: Service, limiter: RateLimiter, origin: str, docs_url: str) -> Litestar:
    """Return what answers at the back office's own host, and nothing else's."""
    nothing = unrouted(service, origin, has_backoffice_alone=True)
    return Litestar(backoffice_pages(service, limiter, origin), **_common(docs_url, nothing))


def _log_router(service: Service) -> Router:
    """Return what strangers read of the logs, where the settings have it served."""
    keys = service.settings.checkpoint_keys or ()
    if service.tiles is None or not service.settings.serve_tiles:
        return tiles_router(None)
    tiles = LogTiles(service.tiles, [key.name for key in keys])
    proofs = ConsistencyProofs(service.checkpoints, tiles.charge)
    return tiles_router(tiles, consistency_route(proofs))


def _common(docs_url: str, nothing: Unrouted) -> dict[str, Any]:
    """Return what holds for whatever we route, at each host."""
    return {
        "middleware": [OptionsRefused()],
        # HTTPException is what the framework refuses: unknown paths, wrong methods.
        "exception_handlers": answered({**EXCEPTION_HANDLERS, HTTPException: nothing}),
        "openapi_config": None,
        "request_max_body_size": None,  # service/http/bodies.py bounds, drains and times bodies
        "state": State({"docs_url": docs_url}),
        "logging_config": None,
    }


def _pools(service: Service, metrics: Metrics) -> Loop:
    databases = {ledger.name: ledger.database for ledger in service.ledgers}

    async def watch() -> None:
        while True:
            metrics.pools(databases)
            await asyncio.sleep(POOLS_SECONDS)

    return Loop("pools", watch)
