"""Responses: JSON bodies, and every refusal in the one error envelope (contract 2.8)."""

from collections.abc import Mapping

import msgspec
import structlog
from litestar import Response
from litestar.exceptions import HTTPException
from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.methods import allowed
from service.ledger.database import LedgerError
from service.ledger.encryption import KeyUnknown

log = structlog.get_logger()

RETRY_AFTER_SECONDS = 1
"""What a 503 advises where nothing better is known."""

BY_STATUS = {404: "not_found", 405: "method_not_allowed", 413: "payload_too_large"}
"""Error codes for what the framework itself refuses."""


class JsonResponse(Response[bytes]):
    """Encoded JSON, sent as it is.

    The framework's own way there looks for cookies, encoders and background tasks, which the API
    has none of.
    """

    def to_asgi_response(self, *_given: object, **_named: object) -> ASGIApp:  # pyright: ignore[reportIncompatibleMethodOverride] - any application will do
        """Return what sends it."""
        return self._send

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as ASGI names them
        body = b"" if scope.get("method") == "HEAD" else self.content
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            *[(name.lower().encode(), value.encode()) for name, value in self.headers.items()],
        ]
        status = self.status_code or 200
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def json_response(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """Return a body as JSON."""
    return JsonResponse(msgspec.json.encode(body), status_code=status, headers=dict(headers or {}))


def refusal_response(request: AnyRequest, refusal: Refusal) -> Response[bytes]:
    """Return the envelope of a refusal, with the headers that its code requires."""
    told = {"code": refusal.code, "counted_as": refusal.counted_as, "faults": refusal.faults}
    request.scope["state"] |= told
    headers = refusal_headers(refusal, request.app.state.get("docs_url", "/docs"))
    return json_response(refusal.envelope(), refusal.row.status, headers)


def refusal_headers(refusal: Refusal, docs_url: str) -> dict[str, str]:
    """Return the headers that a refusal's code requires."""
    headers = {"Link": f'<{docs_url}#error-{refusal.code}>; rel="help"'}
    if refusal.row.status == 401:  # noqa: PLR2004 - RFC 9110, 15.5.2
        headers["WWW-Authenticate"] = "Bearer"
    retry_after = refusal.retry_after_seconds
    if retry_after is None and refusal.row.status == 503:  # noqa: PLR2004 - contract section 8
        retry_after = RETRY_AFTER_SECONDS
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)
    return headers


def on_http_exception(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Handle what the framework refuses: unknown paths, wrong methods, malformed requests."""
    if error.status_code >= 500:  # noqa: PLR2004 - the framework's own failures
        return on_unexpected(request, error)
    code = BY_STATUS.get(error.status_code, "validation_failed")
    form_errors = [error.detail] if code == "validation_failed" else []
    return with_headers(refusal_response(request, Refusal(code, form_errors=form_errors)), error)


def with_headers(response: Response[bytes], error: HTTPException) -> Response[bytes]:
    """Return the response with the headers of the framework's refusal, such as a 405's `Allow`."""
    for name, value in (error.headers or {}).items():
        shown = allowed(set(value.split(", "))) if name.lower() == "allow" else value
        response.set_header(name.title(), shown)
    return response


def on_ledger_error(request: AnyRequest, error: LedgerError) -> Response[bytes]:
    """Handle an unreachable PostgreSQL, or an append that lost every race.

    Whether anything was written is unknown; the same request sent again finds out.
    """
    log.warning("ledger unavailable", error_type=type(error.__cause__ or error).__name__)
    return refusal_response(request, Refusal("service_unavailable"))


def on_key_unknown(request: AnyRequest, error: KeyUnknown) -> Response[bytes]:
    """Handle a master key that is missing from the ring, which operators can add."""
    log_missing_key(request, error)
    return refusal_response(request, Refusal("service_unavailable"))


def log_missing_key(request: AnyRequest, error: KeyUnknown) -> None:
    """Log which master key is missing, or does not open what it should."""
    log.error(
        "master key missing",
        request_id=request.scope["state"]["request_id"],
        master_key_id=error.master_key_id,
        exc_info=error,
    )


def on_unexpected(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Handle an error of ours; only the log describes it."""
    log.error("unexpected error", request_id=request.scope["state"]["request_id"], exc_info=error)
    return refusal_response(request, Refusal("internal_error"))


EXCEPTION_HANDLERS = {
    Refusal: refusal_response,
    HTTPException: on_http_exception,
    LedgerError: on_ledger_error,
    KeyUnknown: on_key_unknown,
    Exception: on_unexpected,
}


def replay_headers(replayed: bool, matches: bool | None) -> dict[str, str]:
    """Return the headers of an idempotent replay.

    `matches` is None where nothing was compared because the data has been erased.
    """
    if not replayed:
        return {}
    headers = {"Idempotent-Replayed": "true"}
    if matches is not None:
        headers["Idempotent-Payload-Match"] = str(matches).lower()
    return headers
