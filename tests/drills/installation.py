"""What is drilled: the service on one machine, its way to the cluster, and clients of it."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import httpx
import psycopg

from service.app.bootstrap import Service
from service.evidence.note import NoteKey
from tests.databases import migrated, with_logins
from tests.drills.encryption import authority
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.pgbouncer import deployed_logins, pooler
from tests.processes import end, free_port, start
from tests.soak.accounts import SERVICE
from tests.soak.history import History
from tests.soak.kills import Supervised
from tests.soak.run import answers, customers, settle
from tests.soak.traffic import TIMEOUT_SECONDS, Client, Customer
from tests.world import MASTER_KEY, TEAM, settings_for

CLIENTS = 50
PAUSE_SECONDS_MAX = 0.5
"""Fifty that never rest would be a test of two cores, and not of what is lost."""
WEIGHTS = {"create": 60, "repeat": 25, "list": 15}
WORKERS = 2
NODES = 3
CHECKPOINT_SECONDS = 2
_DEGRADED = "claim_ledger_rate_limit_degraded"
NOBODY = dict.fromkeys(
    ("NODE_ONE", "NODE_TWO", "NODE_THREE", "REDIS_ONE", "REDIS_TWO"), "127.0.0.2"
)
"""Nodes of a proxy that are not part of a drill."""


class Installation:
    """`serve` with its worker behind a proxy of its own, and all that it publishes."""

    def __init__(self, home: Path, url: str, nodes: Mapping[str, str], **given: str) -> None:
        """`nodes` are addresses behind its proxy; `given` are settings, without their prefix."""
        self.home = home
        self.url = url
        self._nodes = nodes
        self._key = NoteKey.generate("example.com/claim-ledger")
        published = home / "published"
        published.mkdir(mode=0o700)
        port, self._operations = free_port(), free_port()
        self.origin = f"http://127.0.0.1:{port}"
        self.values = with_logins(
            {
                "DATABASE_URL": self.url,
                "MASTER_KEYS": MASTER_KEY,
                "PUBLIC_URL": self.origin,
                "SMTP_URL": (home / "mail").as_uri(),
                "PORT": str(port),
                "OPERATIONS_PORT": str(self._operations),
                "RATE_LIMIT_PER_MINUTE": "1000000",
                "LOG_LEVEL": "warning",
                "STAFF": TEAM,
                "ARCHIVE_URL": published.as_uri(),
                "CHECKPOINT_KEYS": self._key.private_text,
                "CHECKPOINT_INTERVAL_SECONDS": str(CHECKPOINT_SECONDS),
                **given,
            }
        )
        self.serve = Supervised([*SERVICE, "serve"], self.environment, home / "serve.log")
        self.history = History()

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the service and of the team's commands."""
        return os.environ | {f"CLAIM_LEDGER_{name}": text for name, text in self.values.items()}

    @asynccontextmanager
    async def running(self, *, pooled: bool = False) -> AsyncGenerator[list[Customer]]:
        """Migrate, serve, and yield the customers of its partners.

        `pooled`: the ledgers' logins go through PgBouncer, which is in front of the proxy.
        """
        with ExitStack() as ending:
            ending.callback(end, self._start_proxy(), signal.SIGKILL)
            until(self._reaches_the_primary, look=0.1)
            migrated(self.url)
            if pooled:
                made = deployed_logins(self.url)
                pooled_urls = pooler(self.url, made, self.home, authority=authority(self.home))
                self.values |= ending.enter_context(pooled_urls)
                self.serve.environment = self.environment
            self.serve.start()
            ending.callback(self.serve.stop)
            await answers(self.serve, self.origin)
            settings = settings_for(self.url, self.home)
            service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
            async with service.opened():
                yield await customers(service)

    def accepted(self, since: float) -> list[float]:
        """Return when new claims were acknowledged that were asked for after a moment."""
        return [
            one["end"]
            for one in self.history.operations
            if one["op"] == "create_claim" and one["status"] == 201 and one["start"] > since
        ]

    def shares_limits(self) -> bool:
        """Return whether no process limits by itself, because Redis is away."""
        try:
            scraped = httpx.get(f"http://127.0.0.1:{self._operations}/metrics", verify=NO_TLS)
        except httpx.TransportError:
            return False
        degraded = [line for line in scraped.text.splitlines() if line.startswith(_DEGRADED)]
        return bool(degraded) and all(line.endswith(" 0.0") for line in degraded)

    @asynccontextmanager
    async def load(self, served: list[Customer], seed: int) -> AsyncGenerator[None]:
        """Have the clients claim, repeat and list until the block ends."""
        over = asyncio.Event()
        async with self._http() as http:
            clients = [self._client(http, served, f"{seed}-{n}") for n in range(CLIENTS)]
            running = [asyncio.create_task(one.run(over)) for one in (self.serve, *clients)]
            try:
                yield
            finally:
                over.set()
                await asyncio.gather(*running)

    async def settle(self, served: list[Customer]) -> None:
        """List every claim, so that the history shows what is left."""
        async with self._http() as http:
            await settle(self._client(http, served, "settling"), served)

    def command(self, *words: str | Path) -> tuple[int, dict[str, Any]]:
        """Run a command of the team; return its exit code and its answer."""
        done = subprocess.run(
            [*SERVICE, *words, "--json"], env=self.environment, capture_output=True, check=False
        )
        assert done.stdout, done.stderr.decode()[-2000:]
        return done.returncode, json.loads(done.stdout)

    @property
    def public_key(self) -> str:
        """What auditors verify by."""
        return self._key.public_text

    def _http(self) -> httpx.AsyncClient:
        limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
        return httpx.AsyncClient(
            base_url=f"{self.origin}/v1", timeout=TIMEOUT_SECONDS, verify=NO_TLS, limits=limits
        )

    def _client(self, http: httpx.AsyncClient, served: list[Customer], name: str) -> Client:
        random = Random(name)  # noqa: S311 - no secret
        return Client(
            f"client-{name}", served, http, self.history, random, WEIGHTS, PAUSE_SECONDS_MAX
        )

    def _start_proxy(self) -> "subprocess.Popen[bytes]":
        with (self.home / "haproxy.log").open("ab") as log:
            return start(
                ["/usr/sbin/haproxy", "-db", "-f", self.home / "haproxy.cfg"],
                bound_by=signal.SIGKILL,
                env=NOBODY | dict(self._nodes),
                stdout=log,
                stderr=log,
            )

    def _reaches_the_primary(self) -> bool:
        """Return whether the proxy has looked at each node; until then it takes turns of all."""
        with suppress(psycopg.OperationalError):
            return all(self._meets_the_primary() for _ in range(NODES))
        return False

    def _meets_the_primary(self) -> bool:
        with psycopg.connect(self.url, connect_timeout=2) as connection:
            return connection.execute("select not pg_is_in_recovery()").fetchone() == (True,)
