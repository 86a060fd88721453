"""Moving windows in Redis, shared by all workers, and the circuit breaker for its outages.

With `limits` alone a charge is two round trips: 156 us of CPU for a single charge, 114 at 16
concurrent ones, 123 at 64. Here charges that arrive during a round trip travel together in the
next, and one script takes each place and counts in the same step: 78, 19 and 21 us (63, 11 and 9
with hiredis; uvloop, redis-py 8.1, minimum of six interleaved rounds).
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from importlib.resources import files
from typing import Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from service.http.rate_limit.windows import Allowance

TIMEOUT_SECONDS: Final = 1.0
"""To connect, and again for a reply: the most that the first request of an outage waits.

With less, a burst that keeps the event loop busy would look like an outage, and each process would
count for itself.
"""
BATCH_MAX: Final = 256
_PROBE: Final = "{claim-ledger}:rate:probe"
_SCRIPT: Final = (files("service.http.rate_limit") / "take_window.lua").read_text(encoding="utf-8")
_log = structlog.get_logger(__name__)


def _reason(fault: BaseException) -> BaseException:
    """Return the system's own error where redis-py has one of its own for several.

    A server that is down, has another certificate or no address is a ConnectionError to it.
    """
    within: BaseException | None = fault
    while within is not None and not isinstance(within, OSError):
        within = within.__cause__ or within.__context__
    return within or fault


@dataclass(frozen=True, slots=True)
class _Charge:
    """One charge under way; its result is None while Redis is unavailable."""

    key: str
    limit: int
    result: asyncio.Future[Allowance | None]

    def resolve(self, allowance: Allowance | None) -> None:
        """Set the result, unless the request was cancelled meanwhile."""
        if not self.result.done():
            self.result.set_result(allowance)


def _allowances(limits: Sequence[int], reply: Sequence[int]) -> Sequence[Allowance]:
    rows = zip(limits, reply[::4], reply[1::4], reply[2::4], reply[3::4], strict=True)
    return [
        # Just after the limit was lowered, more places can be taken than there are.
        Allowance(limit, max(0, limit - taken), reset_ms, admitted == 1, wait_ms)
        for limit, admitted, taken, reset_ms, wait_ms in rows
    ]


@dataclass(kw_only=True)
class RedisWindows:
    """Windows shared by all workers; one call of the script is under way at a time.

    `url` is `redis://`, `rediss://` or `unix://`. `on_degraded` is called with True when Redis
    becomes unavailable and with False when it is back, probed every `probe_seconds`.
    """

    url: InitVar[str]
    window_seconds: float
    on_degraded: Callable[[bool], None]
    probe_seconds: float

    def __post_init__(self, url: str) -> None:
        """Prepare a client; nothing is sent before the first charge."""
        # redis-py would retry three times with pauses of up to 10 s. One retry, of broken
        # connections only, hides a restart of Redis; at worst a charge counts twice.
        self._pooled = Redis.from_url(
            url,
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
        )
        # One connection, as one call is under way at a time: a pool's loan takes a fifth of a call.
        self._client = self._pooled.client()
        self._script = self._client.register_script(_SCRIPT)
        self._away = False
        self._waiting: list[_Charge] = []
        self._sender: asyncio.Task[None] | None = None
        self._prober: asyncio.Task[None] | None = None

    async def take(self, key: str, limit: int) -> Allowance | None:
        """Take a place in a window of `limit`; None at once during a known outage of Redis."""
        if self._away:
            return None
        charge = _Charge(key, limit, asyncio.get_running_loop().create_future())
        self._waiting.append(charge)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())
        return await charge.result

    async def close(self) -> None:
        """Stop the tasks and close the connections; charges under way result in None."""
        self._away = True
        for task in (self._sender, self._prober):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._give_up(self._waiting)
        await self._client.aclose()
        await self._pooled.aclose()

    async def _send(self) -> None:
        batch: list[_Charge] = []
        try:
            while self._waiting and not self._away:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                allowances = await self._call([(charge.key, charge.limit) for charge in batch])
                for charge, allowance in zip(batch, allowances, strict=True):
                    charge.resolve(allowance)
        finally:
            self._sender = None
            self._give_up([*batch, *self._waiting])

    def _give_up(self, charges: Sequence[_Charge]) -> None:
        # However the sender ended, no request is left waiting.
        for charge in charges:
            charge.resolve(None)
        self._waiting = []

    async def _call(self, keys: Sequence[tuple[str, int]]) -> Sequence[Allowance | None]:
        limits = [limit for _, limit in keys]
        try:
            reply: list[int] = await self._script(
                keys=[key for key, _ in keys], args=[self.window_seconds, *limits]
            )
            return _allowances(limits, reply)
        except Exception as fault:  # noqa: BLE001 - whatever it is, some limit has to hold
            self._degrade(fault)
            return [None] * len(keys)

    def _degrade(self, fault: Exception) -> None:
        if self._away:
            return
        self._away = True
        _log.warning("rate_limit_degraded", error_type=type(_reason(fault)).__name__)
        self.on_degraded(True)
        self._prober = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        # By a charge that writes: a replica or a full Redis would answer a PING too, and the
        # limiter would flap. In a new window: a full Redis refuses a script by its first write
        # alone, and removing an expired place is a write that it accepts. (A partner's charge that
        # begins so is counted as always.) Over a new connection: its name may lead to another
        # server by now, while the one that was the primary still answers.
        while self._away:
            await asyncio.sleep(self.probe_seconds)
            if self._client.connection is not None:
                await self._client.connection.disconnect(nowait=True)
            probe = f"{_PROBE}:{secrets.token_hex(8)}"
            if (await self._call([(probe, 1)]))[0] is not None:
                self._away = False
                _log.info("rate_limit_restored")
                self.on_degraded(False)
