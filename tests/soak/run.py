"""A run: an installation of its own, traffic, kills, and then the accounts of what happened."""

import asyncio
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx

from service.app.bootstrap import Service
from service.cli.dev.postgres import EmbeddedPostgres
from tests.bench.processes import runs
from tests.databases import migrated, with_logins
from tests.no_tls import NO_TLS
from tests.patience import eventually
from tests.processes import free_port
from tests.redis_server import RedisServer
from tests.soak.accounts import SERVICE, claims, diverged, documents, statuses, value
from tests.soak.held import BACKENDS, Held, Watch
from tests.soak.history import History
from tests.soak.kills import Kills, Supervised
from tests.soak.store import DocumentStore
from tests.soak.traffic import (
    PAUSE_SECONDS_MAX,
    TIMEOUT_SECONDS,
    Client,
    Customer,
    Disconnections,
    connect,
)
from tests.world import MASTER_KEY, STAFF, TEAM, settings_for

PARTNERS = 3
ENTITIES = 3
"""Of each partner."""
CLIENTS = 8
WORKERS = 2
LOOKS = 240
"""At memory, open files and backends."""
_BEHIND = """
select (select count(*) from live.pending) + (select count(*) from live.subscriptions
    where position < (select size from live.head))
"""


async def soak(
    directory: Path,
    history: History,
    *,
    seconds: float,
    seed: int,
    bin_dir: Path | None = None,
    pause_seconds_max: float = PAUSE_SECONDS_MAX,
) -> dict[str, Any]:
    """Run traffic and kills for a while; return what was acknowledged, lost, doubled and left.

    `pause_seconds_max` is what each client waits at most between two requests.
    """
    with ExitStack() as ending:
        redis, store = RedisServer(directory), DocumentStore(directory / "store")
        redis.start()
        ending.callback(redis.stop)
        store.start()
        ending.callback(store.kill)
        # Durable, because what was committed before a kill is counted afterwards.
        postgres = ending.enter_context(EmbeddedPostgres(directory / "postgres", bin_dir=bin_dir))
        url = postgres.url
        migrated(url)
        environment = _environment(url, redis, store, directory)
        serve = Supervised([*SERVICE, "serve"], environment, directory / "serve.log")
        serve.start()
        ending.callback(serve.stop)
        origin = f"http://127.0.0.1:{environment['CLAIM_LEDGER_PORT']}"
        await answers(serve, origin)
        watch, began = Watch(serve, url, max(1, seconds / LOOKS)), time.monotonic()
        first = await watch.look()
        async with Service(settings_for(url, directory)).opened() as service:
            kills = Kills(postgres, redis, store, serve, _random(seed, "kills"))
            run = Run(service, serve, kills, watch, origin, history, seed, pause_seconds_max)
            warm = await run.traffic(seconds)
        took = time.monotonic() - began
        await eventually(lambda: value(url, _BEHIND) == 0, look=0.2)
        last, pids = await watch.look(), serve.pids()
        serve.stop()
        await eventually(lambda: value(url, BACKENDS) == 0, look=0.2)
        return {
            "seed": seed,
            "seconds": round(took, 1),
            "requests": len(history.operations),
            "kills": dict(kills.done),
            "restarts": serve.starts - 1,
            "statuses": statuses(history),
            **claims(url, history),
            "documents": documents(url, history, environment),
            "diverged": diverged(environment),
            "history": history.faults(),
            "held": watch.compared(first=first, warm=warm, last=last),
            "leaks": {"backends": value(url, BACKENDS), "processes": sum(map(runs, pids))},
        }


@dataclass
class Run:
    """An installation, and what goes on in it."""

    service: Service
    serve: Supervised
    kills: Kills
    watch: Watch
    origin: str
    history: History
    seed: int
    pause_seconds_max: float

    async def traffic(self, seconds: float) -> Held:
        """Run clients and kills for a while; list every claim once all is back.

        In the last sixth no process of the service is killed; return what they hold in the middle
        of that, when they are warm.
        """
        served = await customers(self.service)
        over = asyncio.Event()
        async with httpx.AsyncClient(
            base_url=f"{self.origin}/v1", timeout=TIMEOUT_SECONDS, verify=NO_TLS
        ) as http:
            clients = [
                Client(
                    *(name, served, http, self.history, _random(self.seed, name)),
                    pause_seconds_max=self.pause_seconds_max,
                )
                for name in (f"client-{number}" for number in range(CLIENTS))
            ]
            ends = Disconnections(
                self.service, served, self.history, _random(self.seed, "customer")
            )
            parts = (self.serve, self.kills, self.watch, ends, *clients)
            running = [asyncio.create_task(one.run(over)) for one in parts]

            async def going_on(share: float) -> None:
                await asyncio.wait(
                    running, timeout=seconds * share, return_when=asyncio.FIRST_EXCEPTION
                )

            await going_on(5 / 6)
            self.kills.spares_processes = True
            await going_on(1 / 12)
            warm = self.watch.seen[-1]
            await going_on(1 / 12)
            over.set()
            await asyncio.gather(*running)
            await answers(self.serve, self.origin)
            await settle(clients[0], served)
        return warm


def _random(seed: int, whose: str) -> Random:
    return Random(f"{seed} {whose}")  # noqa: S311 - no secret


def _environment(
    url: str, redis: RedisServer, store: DocumentStore, directory: Path
) -> dict[str, str]:
    port = free_port()
    values = {
        "DATABASE_URL": url,
        "REDIS_URL": redis.url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SMTP_URL": (directory / "mail").as_uri(),
        "PORT": str(port),
        "OPERATIONS_PORT": "0",
        "WORKERS": str(WORKERS),
        "RATE_LIMIT_PER_MINUTE": "1000000",
        "LOG_LEVEL": "warning",
        "STAFF": TEAM,
        **store.settings,
    }
    given = with_logins(values)
    return os.environ | {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}


async def customers(service: Service) -> list[Customer]:
    """Make partners with live keys, each connected to businesses of its own."""
    found: list[Customer] = []
    await service.staff.add(TEAM, STAFF)
    for number in range(PARTNERS):
        partner_id = await service.partners.add(f"Partner {number}", "p@example.com", STAFF)
        await service.partners.approve(partner_id, STAFF)
        key = await service.partners.issue_key(partner_id, "live", STAFF)
        for entity in range(ENTITIES):
            name = f"Business {number}-{entity}"
            email = f"b{number}-{entity}@example.com"
            entity_id = await service.modes["live"].entities.add(name, email, None, STAFF)
            customer = Customer(partner_id, key.key_id, key.token, entity_id)
            await connect(service, customer)
            found.append(customer)
    return found


async def answers(serve: Supervised, origin: str) -> None:
    """Wait until the service is ready."""

    async def ready() -> bool:
        serve.revive()
        try:
            async with httpx.AsyncClient(timeout=2, verify=NO_TLS) as http:
                return (await http.get(f"{origin}/health/ready")).is_success
        except httpx.TransportError:
            return False

    await eventually(ready, look=0.1)


async def settle(client: Client, customers: list[Customer]) -> None:
    """List every claim at the end, so that the history shows what is left."""
    for customer in customers:
        token: str | None = None
        while (token := await client.list(customer, token)) is not None:
            pass
