"""The gate in front of every partner endpoint: authentication, then the rate limit.

It is a middleware of the API's router, so no endpoint can be reached around it.
"""

from typing import Any

from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Refusal
from service.facts.caller import Caller
from service.http.bodies import header
from service.http.client_address import network_of
from service.http.rate_limit.limiter import RateLimiter
from service.http.rate_limit.windows import Allowance
from service.partner_api.authentication import Authenticator
from service.partner_api.endpoints import AUTHENTICATION
from service.partner_api.known_keys import KnownKeys
from service.partners.keys import parse_authorization

API_PATH = "/v1"
"""The interface version is part of the base address (contract section 9)."""

_FAILED = frozenset(AUTHENTICATION) - {"auth_missing"}
"""Refusals of wrong credentials; each counts against the caller's network."""


class PartnerGate(ASGIMiddleware):
    """Admits authenticated callers while their partner has requests left."""

    scopes = (ScopeType.HTTP,)

    def __init__(self, authenticator: Authenticator, limiter: RateLimiter) -> None:
        """`limiter` throttles partners, and networks with failed authentications."""
        self._authenticator = authenticator
        self._limiter = limiter
        self._known_keys = KnownKeys()

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Put the caller into the request's state and pass the request on, or refuse it."""
        state = scope["state"]
        caller = await self._authenticated(scope, state)
        state["caller"] = caller
        allowance = await self._limiter.charge(caller.partner_id)
        state["headers"].update(allowance.headers())
        if not allowance.admitted:
            raise _limited(state, allowance)
        await next_app(scope, receive, send)

    async def _authenticated(self, scope: Scope, state: dict[str, Any]) -> Caller:
        """Return the caller; refuse what is no key, or with 429 where its network is blocked.

        From a blocked network, keys that were good before pass as always. Others are looked up, so
        many a second: whoever shares an address with an attacker can begin to use a key, too.
        """
        network = network_of(scope)
        authorization = header(scope, b"authorization")
        blocked = self._limiter.refusal_of(network)
        if (
            blocked is not None
            and not self._known_keys.knows(authorization)
            and not self._limiter.may_look_up(network)
        ):
            raise _limited(state, blocked)
        try:
            caller = await self._authenticator.authenticate(authorization, state["request_id"])
        except Refusal as refusal:
            if refusal.code == "auth_revoked":  # which only the holder of its secret is told
                self._known_keys.forget(parse_authorization(authorization).key_id)
            if refusal.code in _FAILED:
                blocked = blocked or await self._limiter.record_failure(network)
            if blocked is not None:
                raise _limited(state, blocked) from refusal
            raise
        assert authorization is not None  # noqa: S101 - nobody is authenticated without
        self._known_keys.remember(caller.key_id, authorization)
        return caller


def _limited(state: dict[str, Any], allowance: Allowance) -> Refusal:
    """Return a 429, which has the rate-limit headers like every response (contract section 8)."""
    state["headers"].update(allowance.headers())
    return Refusal("rate_limited", retry_after_seconds=allowance.retry_after_seconds)
