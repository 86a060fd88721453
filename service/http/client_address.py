"""Who a request comes from: its address behind the proxies that we trust, and its network.

Proxies write `X-Forwarded-For` in several ways (with ports, with brackets), and repeat what they
were sent. So it is read from the right, and no further than addresses of ours go.
"""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final

import structlog
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from service.http.networks import ADDRESSES_KEPT, Address, address_of, network_of_host

Network = IPv4Network | IPv6Network

HOPS_MAX: Final = 32
"""Addresses of one request that are looked at: longer chains of our own proxies do not exist."""

log = structlog.get_logger()


def network_of(scope: Scope) -> str:
    """Return the network that a request comes from, by which strangers are counted."""
    client = scope.get("client")
    return network_of_host(client[0] if client else "")


class ForwardedClients:
    """Puts the client behind trusted proxies into each request's scope.

    Where an address that is not trusted forwards requests, a line of the log says so, once a
    process: all of its clients would share its limits.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[Network]) -> None:
        """`trusted` are the networks whose `X-Forwarded-For` is believed."""
        self._app = app
        self._trusted = tuple(trusted)
        self._peer = lru_cache(ADDRESSES_KEPT)(self._look_at_peer)
        self._has_warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            client = scope.get("client")
            peer = self._peer(client[0]) if client else None
            if peer is not None:
                self._look_behind(scope, peer)
            elif not self._has_warned:
                self._warn_of_proxy(scope)
        await self._app(scope, receive, send)

    def _look_at_peer(self, host: str) -> Address | None:
        """Return the address of a proxy that we trust; None for everybody else."""
        address = address_of(host)
        return address if address is not None and self._trusts(address) else None

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)

    def _look_behind(self, scope: HTTPScope, peer: Address) -> None:
        forwarded, protocol = _forwarded(scope)
        if not forwarded:
            return
        # The nearest address that is not ours; where there is none, the farthest of ours. What is
        # no address ends the look: nobody we trust vouches for what stands further left.
        nearest = peer
        for item in reversed(forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:]):
            address = address_of(item)
            if address is None:
                break
            nearest = address
            if not self._trusts(address):
                break
        scope["client"] = (str(nearest), 0)
        if protocol in {"http", "https"}:
            scope["scheme"] = protocol

    def _warn_of_proxy(self, scope: HTTPScope) -> None:
        if any(name == b"x-forwarded-for" for name, _ in scope["headers"]):
            self._has_warned = True
            log.warning("a proxy that CLAIM_LEDGER_TRUSTED_PROXIES does not name forwards requests")


def _forwarded(scope: HTTPScope) -> tuple[str, str]:
    """Return all of `X-Forwarded-For`, and the first `X-Forwarded-Proto`."""
    forwarded: list[str] = []
    protocol = ""
    for name, value in scope["headers"]:
        if name == b"x-forwarded-for":
            forwarded.append(value.decode("latin-1"))
        elif name == b"x-forwarded-proto" and not protocol:
            protocol = value.decode("latin-1").strip()
    return ",".join(forwarded), protocol
