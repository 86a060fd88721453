"""The middleware around every request: its id, log line, metrics, and the headers of responses."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import structlog
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.core.clock import Clock
from service.core.ids import NewId
from service.facts.caller import Caller
from service.http.networks import network_of_host
from service.operations.metrics import Metrics, method_shown
from service.people.sessions import Person
from service.request_log.log import RequestLog, RequestLogEntry
from service.request_log.outcome import outcome_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RequestMiddleware:
    """Reports on every request, whether it succeeds or not.

    `request_log` records the calls of partners; `common` are the headers of every answer.
    """

    app: ASGIApp
    metrics: Metrics
    clock: Clock
    new_id: NewId
    request_log: RequestLog
    common: Mapping[str, str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        at = self.clock()
        request_id = self.new_id("req", at)
        headers: dict[str, str] = {"X-Request-Id": request_id, **self.common}
        scope["state"] |= {"request_id": request_id, "headers": headers}
        status = 0
        sent: Mapping[bytes, bytes] = {}

        async def send_with_headers(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                present = sent = dict(message["headers"])
                added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
                message["headers"] = [
                    *message["headers"],
                    *[field for field in added if field[0] not in present],
                ]
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            self._report(scope, status, sent, at, time.perf_counter() - started)

    def _report(
        self,
        scope: HTTPScope,
        status: int,
        sent: Mapping[bytes, bytes],
        at: datetime,
        seconds: float,
    ) -> None:
        state = scope["state"]
        route = scope.get("path_template") or "unknown"
        code = state.get("code", "")
        counted_as = state.get("counted_as", code)
        self.metrics.request(route, scope["method"], status, counted_as, seconds)
        caller: Caller | None = state.get("caller")
        if caller is not None:
            who = (state["request_id"], caller.partner_id, caller.key_id, at)
            what = (scope["method"], route, status, code, seconds * 1000)
            outcome = outcome_of(sent, state.get("faults"))
            self.request_log.add(caller.mode, RequestLogEntry(*who, *what, outcome))
        visitor = _visitor(scope)
        log.info(
            "request",
            request_id=state["request_id"],
            method=method_shown(scope["method"]),
            route=route,
            status=status,
            code=code,
            duration_ms=round(seconds * 1000, 3),
            partner_id=caller.partner_id if caller else None,
            key_id=caller.key_id if caller else None,
            mode=caller.mode if caller else None,
            client_address=visitor.network,
            person_id=visitor.person_id,
            staff_id=visitor.staff_id,
        )


class _Visitor(NamedTuple):
    """Who asked for a page, and from which network; nothing of what is no page."""

    network: str | None = None
    person_id: str | None = None
    staff_id: str | None = None


def _visitor(scope: HTTPScope) -> _Visitor:
    state, client = scope["state"], scope.get("client")
    if "person" not in state:
        return _Visitor()
    person: Person | None = state["person"]
    # Strangers are blocked by it: the rest of an IPv6 address tells one device from others.
    network = network_of_host(client[0]) if client else None
    return _Visitor(network, person.person_id if person else None, state.get("staff_id"))
