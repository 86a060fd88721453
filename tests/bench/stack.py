"""The stack of a run: PostgreSQL with fsync on, Redis, seeded partners, and the service."""

import asyncio
import base64
import os
import re
import secrets
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import httpx
import psycopg

from service.app.bootstrap import Service
from service.app.settings import SERVE, Settings
from service.cli.dev.postgres import EmbeddedPostgres
from service.facts.caller import Caller
from service.ledger.events import Cause
from tests.bench.processes import children, command_line, cpu_seconds
from tests.databases import migrated, with_logins
from tests.no_tls import NO_TLS
from tests.processes import free_port
from tests.redis_server import RedisServer

DOCKERFILE = Path("deploy/Dockerfile")
START_SECONDS_MAX = 20.0
RATE_LIMIT = 1_000_000
"""Raised: at 120 a minute it would take thousands of partners not to reach it."""
CAUSE = Cause("system:installation", "req_bench")
TEAM = "team@example.com"
POSTGRES = {
    "max_connections": "200",  # pgbench's 64 beside the service's and the peer's pools
    "track_commit_timestamp": "on",  # tells how long numbering lags behind a commit
}


class Customer(NamedTuple):
    """A partner's key, and an entity that the partner is connected to."""

    token: str
    entity_id: str


class Served(NamedTuple):
    """A running server: its port and its parent process."""

    port: int
    process: subprocess.Popen[bytes]

    def api_pids(self) -> list[int]:
        """Return the processes that answer requests: the children, or the only process."""
        found = [pid for pid in children(self.process.pid) if not _follows(pid)]
        return found or [self.process.pid]

    def follower_pids(self) -> list[int]:
        """Return the process of the sequencer and the subscribers."""
        return [pid for pid in children(self.process.pid) if _follows(pid)]

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds so far, of the API processes and of the worker process."""
        kinds = {"api": self.api_pids(), "worker": self.follower_pids()}
        return {kind: sum(map(cpu_seconds, pids)) for kind, pids in kinds.items()}


def _follows(pid: int) -> bool:
    return "-c" in command_line(pid)  # `serve` forks its API processes and starts this one anew


class Stack:
    """The servers of a run; each `database` is a clone of one seeded installation."""

    def __init__(self, directory: Path, owner_url: str, redis: RedisServer) -> None:
        self.directory = directory
        self.program = _deployed(directory / "deployed")
        self.url = owner_url
        self.redis = redis
        self.master_key = base64.b64encode(secrets.token_bytes(32)).decode()
        self.customers: list[Customer] = []

    def url_of(self, database: str) -> str:
        """Return the owner's URL of a database in the cluster."""
        return f"{self.url.rpartition('/')[0]}/{database}"

    def seed(self, customers: int) -> None:
        """Migrate, and create partners with the team's commands; partner n is `ptn_…n`."""
        migrated(self.url)
        self.customers = asyncio.run(
            _seed(Settings.from_environment(self.environment(self.url), require=SERVE), customers)
        )

    def clone(self, database: str) -> str:
        """Clone the seeded database, which nobody may be connected to; return the clone's URL."""
        self.execute(self.url_of("postgres"), f"create database {database} template claim_ledger")
        return self.url_of(database)

    def execute(self, url: str, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as the owner; return the rows of the last."""
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def environment(self, url: str, **more: str) -> dict[str, str]:
        """Return the service's settings for one database."""
        values = {
            "DATABASE_URL": url,
            "REDIS_URL": self.redis.url,
            "MASTER_KEYS": self.master_key,
            "PUBLIC_URL": "http://127.0.0.1",
            "SMTP_URL": (self.directory / "mail").as_uri(),
            "RATE_LIMIT_PER_MINUTE": str(RATE_LIMIT),
            "STAFF": TEAM,
        }
        given = with_logins(values | more)
        return {f"CLAIM_LEDGER_{name}": value for name, value in given.items()}

    @contextmanager
    def service(self, database: str, workers: int) -> Iterator[Served]:
        """Run `claim-ledger serve` with its sequencer and subscribers; log to a file."""
        port = free_port()
        given = self.environment(
            self.url_of(database),
            PORT=str(port),
            OPERATIONS_PORT=str(free_port()),
            WORKERS=str(workers),
        )
        command = [str(self.program), "serve"]
        with self.server(command, given, port, "/health/ready") as served:
            yield served

    @contextmanager
    def server(
        self, command: list[str], environment: dict[str, str], port: int, path: str
    ) -> Iterator[Served]:
        """Run a server until the block ends, once it answers 200 at `path`."""
        log = self.directory / f"server-{port}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, env=os.environ | environment, stdout=output, stderr=output
            )
            try:
                wait_for_answer(f"http://127.0.0.1:{port}{path}", process, log)
                yield Served(port, process)
            finally:
                process.terminate()
                process.wait(20)


@contextmanager
def running_stack(customers: int) -> Iterator[Stack]:
    """Start PostgreSQL and Redis in temporary directories, seed, and stop both."""
    with ExitStack() as ending:
        directory = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        directory.chmod(0o755)
        redis = RedisServer(directory)
        redis.start()
        ending.callback(redis.stop)
        postgres = EmbeddedPostgres(directory / "postgres", settings=POSTGRES, durable=True)
        stack = Stack(directory, ending.enter_context(postgres).url, redis)
        stack.seed(customers)
        yield stack


def _deployed(directory: Path) -> Path:
    """Return the service's program, with the libraries that deploy/Dockerfile installs for it.

    The framework imports what it finds: with development's libraries, a process takes 107 MB at
    rest instead of 80.
    """
    (sync,) = re.findall(r'^ENV SYNC="(.*?)"$', DOCKERFILE.read_text(), re.MULTILINE | re.DOTALL)
    command = [*sync.replace("\\\n", " ").split(), "--quiet", "--no-editable"]
    environment = os.environ | {"UV_PROJECT_ENVIRONMENT": str(directory)}
    subprocess.run(command, check=True, env=environment)
    return directory / "bin" / "claim-ledger"


def wait_for_answer(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers 200."""
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=2, verify=NO_TLS).is_success:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{url} does not answer: {log.read_text()[-2000:]}")
        time.sleep(0.01)


async def _seed(settings: Settings, customers: int) -> list[Customer]:
    drawn: Counter[str] = Counter()

    def numbered(prefix: str, _moment: datetime) -> str:
        # In order, so that pgbench can name partners, keys and entities by a random number.
        drawn[prefix] += 1
        return f"{prefix}_{drawn[prefix]:026}"

    service = Service(settings, new_id=numbered)
    async with service.opened():
        await service.staff.add(TEAM, CAUSE)
        return [await _customer(service, number) for number in range(customers)]


async def _customer(service: Service, number: int) -> Customer:
    live = service.modes["live"]
    partner_id = await service.partners.add(f"Partner {number}", "p@example.com", CAUSE)
    await service.partners.approve(partner_id, CAUSE)
    key = await service.partners.issue_key(partner_id, "live", CAUSE)
    entity_id = await live.entities.add(f"Business {number}", f"b{number}@example.com", None, CAUSE)
    caller = Caller(partner_id, key.key_id, "live", 0, False, False, CAUSE.request_id)
    link = await live.connections.issue_link(caller, "user", None)
    token = link.connect_url.rpartition("/")[2]
    await live.connections.approve(token, entity_id, CAUSE)
    return Customer(key.token, entity_id)
