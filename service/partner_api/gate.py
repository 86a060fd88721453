"""The gate in front of every partner endpoint: authentication, then the rate limit.

It is a middleware of the API's router, so no endpoint can be reached around it.
"""

from typing import Any

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.http.bodies import header
from service.http.rate_limit.limiter import RateLimiter
from service.http.rate_limit.windows import Allowance
from service.partner_api.authentication import Authenticator
from service.partner_api.endpoints import AUTHENTICATION

API_PATH = "/v1"
"""The interface version is part of the base address (contract section 9)."""

_FAILED = frozenset(AUTHENTICATION) - {"auth_missing"}
"""Refusals of wrong credentials; each counts against the caller's network address."""


class PartnerGate(ASGIMiddleware):
    """Admits authenticated callers while their partner has requests left."""

    scopes = (ScopeType.HTTP,)

    def __init__(self, authenticator: Authenticator, limiter: RateLimiter) -> None:
        """`limiter` throttles partners, and addresses with failed authentications."""
        self._authenticator = authenticator
        self._limiter = limiter

    def __deepcopy__(self, _memo: object) -> "PartnerGate":
        """Return the same gate: the framework deep-copies routers when it nests them."""
        return self

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Put the caller into the request's state and pass the request on, or refuse it."""
        state = scope["state"]
        client = scope.get("client")
        address = client[0] if client else ""
        blocked = self._limiter.refusal_of(address)
        if blocked is not None:
            raise _limited(state, blocked)
        authorization = header(scope, b"authorization")
        try:
            caller = await self._authenticator.authenticate(authorization, state["request_id"])
        except Refusal as refusal:
            if refusal.code in _FAILED:
                blocked = await self._limiter.record_failure(address)
                if blocked is not None:
                    raise _limited(state, blocked) from refusal
            raise
        state["caller"] = caller
        allowance = await self._limiter.charge(caller.partner_id)
        state["headers"].update(allowance.headers())
        if not allowance.admitted:
            raise _limited(state, allowance)
        await next_app(scope, receive, send)


def _limited(state: dict[str, Any], allowance: Allowance) -> Refusal:
    """Return a 429, which has the rate-limit headers like every response (contract section 8)."""
    state["headers"].update(allowance.headers())
    return Refusal("rate_limited", retry_after_seconds=allowance.retry_after_seconds)
