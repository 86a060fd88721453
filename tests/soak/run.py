"""A run: an installation of its own, traffic, kills, and then the accounts of what happened."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx
import psycopg

from migrations import migrate
from service.app.bootstrap import Service
from service.cli.dev.postgres import EmbeddedPostgres
from tests.bench.processes import megabytes, open_files, runs
from tests.patience import eventually
from tests.redis_server import RedisServer
from tests.soak.history import History
from tests.soak.kills import Kills, Supervised
from tests.soak.traffic import TIMEOUT_SECONDS, Client, Customer, Disconnections, connect
from tests.world import MASTER_KEY, STAFF, settings_for

PARTNERS = 3
ENTITIES = 3
"""Of each partner."""
CLIENTS = 8
WORKERS = 2
_ROWS = """
select l.claim_id, count(e.append_id)
from live.claim_list as l
left join live.events as e on e.originator_id = l.stream_id and e.topic = 'ClaimCreated'
group by l.claim_id
"""
_TWICE = """
select count(*) from (
    select from live.claim_list group by partner_id, entity_id, partner_claim_id having count(*) > 1
) as twice
"""
_BEHIND = """
select (select count(*) from live.pending) + (select count(*) from live.subscriptions
    where position < (select size from live.head))
"""
_BACKENDS = "select count(*) from pg_stat_activity where application_name like 'claim-ledger %'"


class Soaked(NamedTuple):
    """The figures, and the history."""

    figures: dict[str, Any]
    history: History


async def soak(
    directory: Path, *, seconds: float, seed: int, bin_dir: Path | None = None
) -> Soaked:
    """Run traffic and kills for a while; return what was acknowledged, lost, doubled and left."""
    history = History()
    with ExitStack() as ending:
        redis = RedisServer(directory)
        redis.start()
        ending.callback(redis.stop)
        # Durable, because what was committed before a kill is counted afterwards.
        postgres = ending.enter_context(EmbeddedPostgres(directory / "postgres", bin_dir=bin_dir))
        url = postgres.url
        migrate(url)
        environment = _environment(url, redis, directory)
        serve = Supervised(_serve(), environment, directory / "serve.log")
        serve.start()
        ending.callback(serve.stop)
        origin = f"http://127.0.0.1:{environment['CLAIM_LEDGER_PORT']}"
        await _answers(serve, origin)
        before, began = _held(serve), time.monotonic()
        async with Service(settings_for(url, directory)).opened() as service:
            kills = Kills(postgres, redis, serve, _random(seed, "kills"))
            await _traffic(service, serve, kills, origin, history, seconds, seed)
        took = time.monotonic() - began
        await eventually(lambda: _value(url, _BEHIND) == 0, look=0.2)
        after, pids = _held(serve), serve.pids()
        serve.stop()
        await eventually(lambda: _value(url, _BACKENDS) == 0, look=0.2)
        figures = {
            "seed": seed,
            "seconds": round(took, 1),
            "requests": len(history.operations),
            "kills": dict(kills.done),
            "restarts": serve.starts - 1,
            "statuses": _statuses(history),
            **_ledger(url, history),
            "diverged": _diverged(environment, directory),
            "history": history.faults(),
            "leaks": {
                "backends": _value(url, _BACKENDS),
                "processes": sum(map(runs, pids)),
                "megabytes": {"first": before["megabytes"], "last": after["megabytes"]},
                "open_files": {"first": before["open_files"], "last": after["open_files"]},
            },
        }
    return Soaked(figures, history)


async def _traffic(
    service: Service,
    serve: Supervised,
    kills: Kills,
    origin: str,
    history: History,
    seconds: float,
    seed: int,
) -> None:
    """Run clients and kills for a while; list every claim once all is back."""
    customers = await _customers(service)
    over = asyncio.Event()
    async with httpx.AsyncClient(base_url=f"{origin}/v1", timeout=TIMEOUT_SECONDS) as http:
        names = [f"client-{number}" for number in range(CLIENTS)]
        clients = [Client(name, customers, http, history, _random(seed, name)) for name in names]
        ends = Disconnections(service, customers, history, _random(seed, "customer"))
        running = [asyncio.create_task(one.run(over)) for one in (serve, kills, ends, *clients)]
        await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        over.set()
        await asyncio.gather(*running)
        await _answers(serve, origin)
        await _settle(clients[0], customers)


def _random(seed: int, whose: str) -> Random:
    return Random(f"{seed} {whose}")  # noqa: S311 - no secret


def _environment(url: str, redis: RedisServer, directory: Path) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    values = {
        "DATABASE_URL": url,
        "REDIS_URL": redis.url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SMTP_URL": (directory / "mail").as_uri(),
        "PORT": str(port),
        "WORKERS": str(WORKERS),
        "RATE_LIMIT_PER_MINUTE": "1000000",
        "LOG_LEVEL": "warning",
    }
    return os.environ | {f"CLAIM_LEDGER_{name}": text for name, text in values.items()}


def _serve() -> list[str]:
    return [sys.executable, "-c", "from service.cli import main; main()", "serve"]


async def _customers(service: Service) -> list[Customer]:
    found: list[Customer] = []
    for number in range(PARTNERS):
        partner_id = await service.partners.add(f"Partner {number}", "p@example.com", STAFF)
        await service.partners.approve(partner_id, STAFF)
        key = await service.partners.issue_key(partner_id, "live", STAFF)
        for entity in range(ENTITIES):
            name = f"Business {number}-{entity}"
            email = f"b{number}-{entity}@example.com"
            entity_id = await service.modes["live"].entities.add(name, email, None, STAFF)
            customer = Customer(partner_id, key.token, entity_id)
            await connect(service, customer)
            found.append(customer)
    return found


async def _answers(serve: Supervised, origin: str) -> None:
    """Wait until the service is ready."""

    async def ready() -> bool:
        serve.revive()
        try:
            async with httpx.AsyncClient(timeout=2) as http:
                return (await http.get(f"{origin}/health/ready")).is_success
        except httpx.TransportError:
            return False

    await eventually(ready, look=0.1)


async def _settle(client: Client, customers: list[Customer]) -> None:
    """List every claim at the end, so that the history shows what is left."""
    for customer in customers:
        token: str | None = None
        while (token := await client.list(customer, token)) is not None:
            pass


def _value(url: str, query: str) -> Any:
    with psycopg.connect(url) as owner:
        row = owner.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _held(serve: Supervised) -> dict[str, Any]:
    """Return the most that one of the service's processes has, of memory and of open files."""
    pids = serve.pids()
    return {
        "megabytes": max(megabytes(one, peak=False) for one in pids),
        "open_files": max(open_files(one) for one in pids),
    }


def _statuses(history: History) -> dict[str, int]:
    counted: dict[str, int] = defaultdict(int)
    for one in history.operations:
        counted[f"{one['op']} {one['status'] or 'no answer'}"] += 1
    return dict(sorted(counted.items()))


def _ledger(url: str, history: History) -> dict[str, Any]:
    """Compare what was acknowledged with the ledger."""
    ids: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in history.operations:
        if one["op"] == "create_claim" and one["status"] in {200, 201}:
            ids[one["entity"], one["key"]].add(one["claim_id"])
    with psycopg.connect(url) as owner:
        events = dict(owner.execute(_ROWS.encode()).fetchall())
    acknowledged = {claim_id for found in ids.values() for claim_id in found}
    return {
        "acknowledged": len(acknowledged),
        "lost": sum(events.get(claim_id, 0) == 0 for claim_id in acknowledged),
        "doubled": sum(len(found) > 1 for found in ids.values())
        + sum(count > 1 for count in events.values())
        + _value(url, _TWICE),
    }


def _diverged(environment: Mapping[str, str], directory: Path) -> int:
    """Return in how many rows the read models differ from what a replay of the logs makes."""
    command = ["projections", "rebuild", "--all", "--if-equal", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", "from service.cli import main; main()", *command],
        env=environment,
        capture_output=True,
        check=False,
    )
    (directory / "rebuild.json").write_bytes(done.stdout)
    return sum(row["differences"] for row in json.loads(done.stdout)["rebuilt"])
