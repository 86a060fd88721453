"""Killing servers and the processes of the service at random; what starts it again."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from service.cli.dev.postgres import EmbeddedPostgres
from tests.bench.processes import children, runs
from tests.processes import end, start
from tests.redis_server import RedisServer
from tests.soak.store import DocumentStore

REST_SECONDS = (2.0, 6.0)
"""Between two kills: long enough for the service to be back now and then."""
AWAY_SECONDS_MAX = 2.0
LOOK_SECONDS = 0.2


@dataclass
class Supervised:
    """`serve` under a supervisor, as every installation runs it.

    It ends by itself when one of its processes dies twice within some seconds (Granian's guard
    against crash loops), and is started again.
    """

    command: list[str]
    environment: Mapping[str, str]
    log: Path
    starts: int = 0

    def start(self) -> None:
        """Start it."""
        with self.log.open("ab") as log:
            self._process = start(self.command, env=self.environment, stdout=log, stderr=log)
        self.starts += 1

    async def run(self, over: asyncio.Event) -> None:
        """Start it again whenever it has ended."""
        while not over.is_set():
            self.revive()
            await asyncio.sleep(LOOK_SECONDS)

    def revive(self) -> None:
        """Start it again if it has ended."""
        if self._process.poll() is not None:
            end(self._process)
            self.start()

    def stop(self) -> None:
        """Stop it in good order."""
        end(self._process)

    def pids(self) -> list[int]:
        """Return its processes: of the API, and the worker."""
        return children(self._process.pid) if runs(self._process.pid) else []


@dataclass
class Kills:
    """What is killed, and how often each was."""

    postgres: EmbeddedPostgres
    redis: RedisServer
    store: DocumentStore
    service: Supervised
    random: Random
    spares_processes: bool = False
    """Whether only servers are killed, so that what the service's processes leak adds up."""
    done: Counter[str] = field(default_factory=Counter[str])

    async def run(self, over: asyncio.Event) -> None:
        """Kill one thing after another until it is over; everything runs afterwards."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), self.random.uniform(*REST_SECONDS))
            if over.is_set():
                return
            what = self.random.choice(
                ["postgres", "redis", "store", "process", "process", "process"]
            )
            if what == "process" and self.spares_processes:
                continue
            away = self.random.uniform(0, AWAY_SECONDS_MAX)
            match what:
                case "postgres":
                    await asyncio.to_thread(self.postgres.shutdown_abruptly)
                    await asyncio.sleep(away)
                    await asyncio.to_thread(self.postgres.start)
                case "redis":
                    await asyncio.to_thread(self.redis.kill)
                    await asyncio.sleep(away)
                    await asyncio.to_thread(self.redis.start)
                case "store":
                    await asyncio.to_thread(self.store.kill)
                    await asyncio.sleep(away)
                    await asyncio.to_thread(self.store.start)
                case _:
                    pids = self.service.pids()
                    if not pids:
                        continue
                    with suppress(ProcessLookupError):
                        os.kill(self.random.choice(pids), signal.SIGKILL)
            self.done[what] += 1
