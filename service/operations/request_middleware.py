"""Around everything: a request id, a log line, metrics, and the headers of every answer."""

import time
from datetime import datetime

import structlog
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.core.clock import Clock
from service.core.ids import NewId
from service.facts.caller import Caller
from service.operations.metrics import Metrics
from service.request_log.log import RequestLog, RequestLogEntry

log = structlog.get_logger()


class RequestMiddleware:
    """The outermost ASGI application: what it wraps need not succeed for it to answer."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, clock: Clock, new_id: NewId, notes: RequestLog
    ) -> None:
        """`app` is the application proper; `notes` hears of the calls of partners."""
        self._app = app
        self._metrics = metrics
        self._clock = clock
        self._new_id = new_id
        self._notes = notes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        at = self._clock()
        request_id = self._new_id("req", at)
        headers: dict[str, str] = {"X-Request-Id": request_id}
        scope["state"] = {"request_id": request_id, "headers": headers}
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (name.lower().encode(), value.encode())
                        for name, value in headers.items()
                        if name.lower().encode() not in present
                    ),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, at, time.perf_counter() - started)

    def _note(self, scope: HTTPScope, status: int, at: datetime, seconds: float) -> None:
        state = scope["state"]
        route = scope.get("path_template") or "unknown"
        code = state.get("code", "")
        self._metrics.request(route, scope["method"], status, code, seconds)
        caller: Caller | None = state.get("caller")
        if caller is not None:
            self._notes.note(
                caller.mode,
                RequestLogEntry(
                    state["request_id"],
                    caller.partner_id,
                    caller.key_id,
                    at,
                    scope["method"],
                    route,
                    status,
                    code,
                    seconds * 1000,
                ),
            )
        log.info(
            "request",
            request_id=state["request_id"],
            method=scope["method"],
            route=route,
            status=status,
            code=code,
            duration_ms=round(seconds * 1000, 3),
            partner_id=caller.partner_id if caller else None,
            key_id=caller.key_id if caller else None,
            mode=caller.mode if caller else None,
        )
