"""Moving windows in Redis, shared by all workers, and the breaker for a Redis that is away.

Hit and figures through `limits` are two round trips a charge: 156 us of CPU for a lone charge, 114
at 16 at once, 123 at 64. Here charges that come while an answer is under way travel together, and
one script takes each place and counts in the same step: 78, 19 and 21 us (63, 11 and 9 with
hiredis; uvloop, redis-py 8.1, least of six interleaved rounds).
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, cast

import structlog
from limits.aio.storage import RedisStorage
from limits.aio.storage.redis.redispy import RedispyBridge
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from service.http.rate_limit.windows import Allowance

TIMEOUT_SECONDS: Final = 1.0
"""To connect, and again for an answer: what the first request of an outage waits at most.

Shorter, a burst that keeps the event loop busy would pass for an outage, and each process would
count for itself.
"""
BATCH_MAX: Final = 256
_PROBE_KEY: Final = "claim-ledger:rate:probe"
_SCRIPT: Final = (files("service.http.rate_limit") / "take_window.lua").read_text(encoding="utf-8")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Ask:
    """One charge on its way; its answer is None when Redis is away."""

    key: str
    limit: int
    answer: asyncio.Future[Allowance | None]

    def resolve(self, allowance: Allowance | None) -> None:
        """Answer, unless the request has gone away meanwhile."""
        if not self.answer.done():
            self.answer.set_result(allowance)


def _allowances(limits: Sequence[int], reply: Sequence[int]) -> Sequence[Allowance]:
    rows = zip(limits, reply[::4], reply[1::4], reply[2::4], reply[3::4], strict=True)
    return [
        # A limit that was lowered a moment ago can leave more places taken than there are.
        Allowance(limit, max(0, limit - taken), reset_ms, admitted == 1, wait_ms)
        for limit, admitted, taken, reset_ms, wait_ms in rows
    ]


class RedisWindows:
    """Windows that every worker shares; one call of the script is under way at a time."""

    def __init__(
        self,
        url: str,
        *,
        window_seconds: float,
        on_degraded: Callable[[bool], None],
        probe_seconds: float = 1.0,
    ) -> None:
        """Prepare a client; nothing is sent before the first charge.

        `url` is `redis://`, `rediss://` or `unix://`. `on_degraded` hears True when Redis
        is found away and False when it is back; a probe looks every `probe_seconds`.
        """
        # redis-py would repeat thrice with pauses of up to 10 s. One repeat, of cut connections
        # alone, makes a restarted Redis go unnoticed; at worst a charge counts twice.
        storage = RedisStorage(
            # `limits` takes a bare unix:// for another server's.
            f"async+redis+{url}" if url.startswith("unix:") else f"async+{url}",
            implementation="redispy",
            socket_connect_timeout=TIMEOUT_SECONDS,
            socket_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),  # pyright: ignore[reportArgumentType] - passed on to redis-py as it is
        )
        self._client = cast("Redis", cast("RedispyBridge", storage.bridge).get_connection())
        self._script = self._client.register_script(_SCRIPT)
        self._window_seconds = window_seconds
        self._on_degraded = on_degraded
        self._probe_seconds = probe_seconds
        self._away = False
        self._waiting: list[_Ask] = []
        self._sender: asyncio.Task[None] | None = None
        self._prober: asyncio.Task[None] | None = None

    async def take(self, key: str, limit: int) -> Allowance | None:
        """Take a place in a window of `limit`; None at once while Redis is known to be away."""
        if self._away:
            return None
        ask = _Ask(key, limit, asyncio.get_running_loop().create_future())
        self._waiting.append(ask)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send())
        return await ask.answer

    async def close(self) -> None:
        """Stop the tasks and close the connections; charges under way are answered None."""
        self._away = True
        for task in (self._sender, self._prober):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._give_up(self._waiting)
        await self._client.aclose()

    async def _send(self) -> None:
        batch: list[_Ask] = []
        try:
            while self._waiting and not self._away:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                answers = await self._call([(ask.key, ask.limit) for ask in batch])
                for ask, answer in zip(batch, answers, strict=True):
                    ask.resolve(answer)
        finally:
            self._sender = None
            self._give_up([*batch, *self._waiting])

    def _give_up(self, asks: Sequence[_Ask]) -> None:
        # However the sender ended, no request is left waiting.
        for ask in asks:
            ask.resolve(None)
        self._waiting = []

    async def _call(self, asks: Sequence[tuple[str, int]]) -> Sequence[Allowance | None]:
        limits = [limit for _, limit in asks]
        try:
            reply: list[int] = await self._script(
                keys=[key for key, _ in asks], args=[self._window_seconds, *limits]
            )
            return _allowances(limits, reply)
        except Exception as fault:  # noqa: BLE001 - whatever it is, a limit must stand
            self._degrade(fault)
            return [None] * len(asks)

    def _degrade(self, fault: Exception) -> None:
        if self._away:
            return
        self._away = True
        _log.warning("rate_limit_degraded", error_type=type(fault).__name__)
        self._on_degraded(True)
        self._prober = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        # The script itself is tried: a PING would also be answered by a replica or a full Redis,
        # and the limiter would swing to and fro.
        while self._away:
            await asyncio.sleep(self._probe_seconds)
            if (await self._call([(_PROBE_KEY, 1)]))[0] is not None:
                self._away = False
                _log.info("rate_limit_restored")
                self._on_degraded(False)
