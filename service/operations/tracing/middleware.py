"""The middleware that traces each request that has been admitted."""

from dataclasses import dataclass

from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.facts.caller import Caller
from service.operations.metrics import method_shown
from service.operations.tracing.traces import Trace, Traces


@dataclass(frozen=True, slots=True)
class TracingMiddleware:
    """Records a request as a trace, or as a part of its caller's, who is told which part it is.

    The path is never recorded: links' tokens are in it.
    """

    app: ASGIApp
    traces: Traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        trace = self.traces.begin(scope["method"], _traceparent(scope), is_request=True)
        status = 0

        async def send_with_header(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if trace.caller is not None:
                    field = (b"traceparent", trace.traceparent.encode())
                    message["headers"] = [*message["headers"], field]
            await send(message)

        try:
            with trace.opened():
                await self.app(scope, receive, send_with_header)
        finally:
            if trace.is_kept:
                _describe(trace, scope, status)
            self.traces.end(trace)


def _traceparent(scope: HTTPScope) -> str | None:
    given = [value for name, value in scope["headers"] if name == b"traceparent"]
    return given[0].decode("latin-1") if len(given) == 1 else None  # two are none


def _describe(trace: Trace, scope: HTTPScope, status: int) -> None:
    method, state = method_shown(scope["method"]), scope["state"]
    route, code = scope.get("path_template") or "unknown", state.get("code") or None
    caller: Caller | None = state.get("caller")
    trace.span.name = f"{method} {route}"
    trace.span.note(
        http__request__method=method,
        http__route=route,
        http__response__status_code=status,
        claim_ledger__request_id=state.get("request_id"),
        claim_ledger__code=code,
        claim_ledger__mode=caller.mode if caller else None,
        claim_ledger__partner_id=caller.partner_id if caller else None,
        claim_ledger__key_id=caller.key_id if caller else None,
        error__type=code if status >= 500 else None,  # noqa: PLR2004 - the server's faults
    )
