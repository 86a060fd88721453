"""Rate limits of partners; of failed authentications and of signing in, by network; of people.

A charge takes a place in this process's own window first, then in the one in Redis. So a process
never admits more than the limit, whether Redis is available or not, and a partner whose window is
full here, or that Redis has refused, is refused without a round trip until a place is free.
"""

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from service.core.clock import Clock, system_clock
from service.http.rate_limit.windows import Allowance, LocalWindows

if TYPE_CHECKING:
    from service.http.rate_limit.redis import RedisWindows

_PREFIX: Final = "{claim-ledger}:rate"
"""In braces is what a Redis Cluster chooses the slot by: a script's keys have to share one."""

SIGN_INS_PER_MINUTE: Final = 20
"""Attempts to sign in, and guessed links, of a network."""
POSTS_PER_MINUTE: Final = 60
"""Forms that a signed-in person can send, or that can be sent by one link, or from a network by
links: each may be an event, which is kept for ever."""
PAGES_PER_MINUTE: Final = 300
"""Pages that a signed-in person can open: more than people do, and no work without end."""
LOOK_UPS_PER_SECOND: Final = 50
"""Unknown keys that a process looks up for a blocked network: a flood costs no more, and whoever
begins to use a key beside it gets through after a few attempts."""


class RateLimiter:
    """The limits of one worker; with a Redis all workers share them.

    Without `redis_url` (one worker) the windows are in memory. `on_degraded` is called with True
    when a configured Redis becomes unavailable, and with False when it is back.
    """

    def __init__(
        self,
        *,
        redis_url: str | None,
        per_minute: int,
        failures_per_minute: int = 300,
        on_degraded: Callable[[bool], None] = lambda _degraded: None,
        clock: Clock = system_clock,
        monotonic: Callable[[], float] = time.monotonic,
        window_seconds: float = 60.0,
        probe_seconds: float = 1.0,
    ) -> None:
        """`clock` dates the resets, `monotonic` (seconds) measures the windows."""
        self._monotonic = monotonic
        self._partners, self._failures, self._sign_ins, self._posts, self._pages = (
            LocalWindows(
                limit=limit, window_seconds=window_seconds, clock=clock, monotonic=monotonic
            )
            for limit in (
                *(per_minute, failures_per_minute),
                *(SIGN_INS_PER_MINUTE, POSTS_PER_MINUTE, PAGES_PER_MINUTE),
            )
        )
        # Each process for itself: it protects the database, and refuses nobody for long.
        self._look_ups = LocalWindows(
            limit=LOOK_UPS_PER_SECOND, window_seconds=1.0, clock=clock, monotonic=monotonic
        )
        self._redis: RedisWindows | None = None
        if redis_url:
            # Slow to import, and `claim-ledger dev` has no Redis.
            from service.http.rate_limit import redis  # noqa: PLC0415 - as said above

            self._redis = redis.RedisWindows(
                url=redis_url,
                window_seconds=window_seconds,
                on_degraded=on_degraded,
                probe_seconds=probe_seconds,
            )

    async def charge(self, partner_id: str) -> Allowance:
        """Charge one authenticated request to its partner, over all keys and modes."""
        key = f"{_PREFIX}:partner:{partner_id}"
        return await self._take(self._partners, partner_id, key)

    async def record_failure(self, network: str) -> Allowance | None:
        """Count a failed authentication; return the refusal of a network over its limit."""
        key = f"{_PREFIX}:failures:{_hidden(network)}"
        allowance = await self._take(self._failures, network, key)
        return None if allowance.admitted else allowance

    def may_look_up(self, network: str) -> bool:
        """Return whether one more unknown key of a blocked network is looked up."""
        return self._look_ups.take(network).admitted

    async def charge_sign_in(self, network: str) -> Allowance:
        """Charge an attempt to sign in, or a guessed link, to a network."""
        key = f"{_PREFIX}:sign-in:{_hidden(network)}"
        return await self._take(self._sign_ins, network, key)

    async def charge_post(self, sender: str) -> Allowance:
        """Charge a form to the signed-in person, or to the link or the network, that sent it."""
        return await self._take(self._posts, sender, f"{_PREFIX}:post:{_hidden(sender)}")

    async def charge_page(self, person_id: str) -> Allowance:
        """Charge a page to the signed-in person who opened it."""
        return await self._take(self._pages, person_id, f"{_PREFIX}:page:{_hidden(person_id)}")

    def refusal_of(self, network: str) -> Allowance | None:
        """Return the refusal of a network that this process knows to be blocked, or None."""
        return self._failures.refusal(network)

    async def close(self) -> None:
        """Close the connections to Redis and stop probing it."""
        if self._redis:
            await self._redis.close()

    async def _take(self, local: LocalWindows, name: str, key: str) -> Allowance:
        # The local place comes first and remains when Redis is unavailable. It dates from the
        # request, so it never outlives the shared one; a local reset may be milliseconds early.
        asked_at = self._monotonic()
        mine = local.take(name)
        if self._redis is None or not mine.admitted:
            return mine
        ours = await self._redis.take(key, local.limit)
        if ours is None:
            return mine
        local.learn(name, ours, asked_at=asked_at)
        return ours


def _hidden(address: str) -> str:
    """Return a hash: neither Redis nor its backups need to know who failed to sign in."""
    return hashlib.blake2b(address.encode(), digest_size=16).hexdigest()
