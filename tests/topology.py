"""An installation as `deploy/` describes it: TLS, two servers of two processes, pools and a store.

HAProxy → two `claim-ledger serve` of two processes, and a `worker` → PgBouncer → PostgreSQL; Redis;
the local document store. The proxy and the pooler run with the files of `deploy/`. Where ledgers
have nodes of their own (`--citus`), there is no pooler.
"""

import asyncio
import os
import shutil
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx

from service.cli.dev.gcs.credentials import local_credentials
from service.cli.dev.gcs.serving import LocalStore
from tests.certificates import certificate
from tests.databases import login_url
from tests.document_store import BUCKETS, storage_settings
from tests.patience import PATIENCE_SECONDS, until
from tests.pgbouncer import deployed_logins, pooler
from tests.processes import free_port, started
from tests.redis_server import RedisServer
from tests.serving import served
from tests.world import EVERY_ANSWER, MASTER_KEY, PUBLIC_URL, World, settings_for, world_on

DEPLOY = Path(__file__).parents[1] / "deploy"
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
HOST = PUBLIC_URL.removeprefix("https://")
LISTINGS = "listings"
REPEATS_MAX = 4
"""Of a request. Every deadline is the real one here: a busy machine misses some."""
WITHOUT_LIMITS = dict.fromkeys(
    ("CONNECTIONS_MAX", "CONNECTIONS_IN_10_SECONDS_MAX", "REQUESTS_IN_10_SECONDS_MAX"), "100000"
)
"""Of the proxy, where one machine sends what a hundred partners do; tests/topology has them."""


@dataclass
class Proxied(httpx.AsyncBaseTransport):
    """Sends requests for the public address to the proxy's port, from an address of loopback."""

    proxy: "Proxy"
    address: str
    inner: httpx.AsyncHTTPTransport = field(init=False)

    def __post_init__(self) -> None:
        """Verify the proxy's certificate for the public host."""
        self.inner = httpx.AsyncHTTPTransport(
            verify=self.proxy.verifying, local_address=self.address, limits=httpx.Limits()
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it, and repeat it where the answer says when, as the contract has clients do."""
        repeats = REPEATS_MAX if isinstance(request.stream, httpx.ByteStream) else 0
        while True:
            self.proxy.requests += 1
            answer = await self._send(request)
            after = answer.headers.get("Retry-After")
            if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE or not after or not repeats:
                return answer
            repeats -= 1
            self.proxy.repeats += 1
            await answer.aclose()
            await asyncio.sleep(int(after))

    async def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request, with the public host's name in the TLS handshake."""
        sent = httpx.Request(
            request.method,
            request.url.copy_with(host="127.0.0.1", port=self.proxy.port),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions | {"sni_hostname": HOST},
        )
        return await self.inner.handle_async_request(sent)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()


@dataclass
class Proxy:
    """A running HAProxy: its port, what verifies it, and what it was sent."""

    port: int
    verifying: ssl.SSLContext
    log: Path
    metrics_port: int
    requests: int = 0
    repeats: int = 0
    """Of requests that were answered 503, with when to repeat them."""

    def client(self, address: str = "127.1.0.1") -> httpx.AsyncClient:
        """Return a client at an address of loopback; its answers are held against the document."""
        return httpx.AsyncClient(
            transport=Proxied(self, address),
            base_url=PUBLIC_URL,
            event_hooks=EVERY_ANSWER,
            timeout=PATIENCE_SECONDS,
        )

    def connected(self, **more: Any) -> ssl.SSLSocket:
        """Return a connection to the proxy, after the TLS handshake; `more` is of the socket."""
        self.requests += 1
        plain = socket.create_connection(("127.0.0.1", self.port), **more)
        return self.verifying.wrap_socket(plain, server_hostname=HOST)


class RemoteWorld(World):
    """The same people and commands as a `World`, whose requests go through the proxy."""

    proxy: Proxy

    def calling_from(self, address: str) -> httpx.AsyncClient:
        """Return a client at an address of loopback's own for each network."""
        network = ip_network(f"{address}/{64 if ':' in address else 32}", strict=False)
        first, second, *_ = sha256(str(network).encode()).digest()
        return self.proxy.client(f"127.{2 + first % 250}.{second}.1")


@dataclass
class Topology:
    """A running installation."""

    database_url: str
    directory: Path
    store: LocalStore
    proxy: Proxy
    elsewhere: Mapping[str, str]
    """Settings of ledgers that are not where the owner's URL is."""

    @property
    def mail_dir(self) -> Path:
        """Where mails are written."""
        return self.directory / "mail"

    def listings(self) -> int:
        """Return how many listings were requested from storage."""
        return (self.directory / LISTINGS).stat().st_size

    @asynccontextmanager
    async def world(self) -> AsyncGenerator[RemoteWorld, None]:
        """Run the team's commands in this process, and requests through the installation."""
        given = storage_settings(self.store) | dict(self.elsewhere)
        settings = settings_for(self.database_url, self.mail_dir, **given)
        async with world_on(settings, self.mail_dir, follow=False) as local:
            world = RemoteWorld(local.service, local.mail_dir)
            world.proxy = self.proxy
            yield world
            await world.client.aclose()


@contextmanager
def topology_on(
    owner_url: str, directory: Path, elsewhere: Mapping[str, str] | None = None
) -> Iterator[Topology]:
    """Run an installation on a migrated database; everybody can read `directory`.

    `elsewhere` has the URLs of ledgers that are on other nodes, which no pooler is in front of.
    """
    with ExitStack() as stack:
        redis = RedisServer(directory)
        redis.start()
        stack.callback(redis.stop)
        if elsewhere is None:
            reached = stack.enter_context(pooler(owner_url, deployed_logins(owner_url), directory))
        else:
            reached = {"ACCOUNTS_DATABASE_URL": login_url(owner_url, "accounts"), **elsewhere}
        credentials = local_credentials(directory / "store")
        store = LocalStore(stack.enter_context(_store(directory)), credentials)
        given = {
            "PUBLIC_URL": PUBLIC_URL,
            "MASTER_KEYS": MASTER_KEY,
            "SMTP_URL": (directory / "mail").as_uri(),
            "REDIS_URL": redis.url,
            "RATE_LIMIT_PER_MINUTE": "100000",
            "TRUSTED_PROXIES": "127.0.0.1",
            "OPERATIONS_PORT": "0",
            **reached,
            **storage_settings(store),
        }
        stack.enter_context(_worker(given, directory / "worker.log"))
        servers = [stack.enter_context(_server(given, directory / name)) for name in ("one", "two")]
        front = stack.enter_context(proxy(directory, servers))
        yield Topology(owner_url, directory, store, front, elsewhere or {})


@contextmanager
def proxy(
    directory: Path, servers: list[int], given: Mapping[str, str] = WITHOUT_LIMITS
) -> Iterator[Proxy]:
    """Run HAProxy with the file of `deploy/` in front of servers on these ports."""
    assert HAPROXY is not None, "haproxy is not installed (apt-get install haproxy)"
    made = certificate(directory, HOST)
    both = directory / "proxy.pem"
    both.write_bytes(made.read_bytes() + made.with_suffix(".key").read_bytes())
    port, metrics_port = free_port(), free_port()
    values = {
        "BIND": f"127.0.0.1:{port}",
        "METRICS_BIND": f"127.0.0.1:{metrics_port}",
        "CERTIFICATE": str(both),
        "SERVER_ONE": f"127.0.0.1:{servers[0]}",
        "SERVER_TWO": f"127.0.0.1:{servers[1]}",
    }
    environment = {f"PROXY_{name}": text for name, text in (values | dict(given)).items()}
    log = directory / "haproxy.log"
    with (
        log.open("wb") as output,
        started(
            [HAPROXY, "-W", "-db", "-f", DEPLOY / "haproxy.cfg"],
            env=os.environ | environment,
            stdout=output,
            stderr=output,
        ),
    ):
        verifying = ssl.create_default_context(cafile=str(made))
        one = Proxy(port, verifying, log, metrics_port)
        until(lambda: _is_ready(one), log.read_text, look=0.1)
        yield one


def _is_ready(one: Proxy) -> bool:
    """Return whether the proxy has a server that is ready."""
    url, named = f"https://127.0.0.1:{one.port}/health/ready", {"sni_hostname": HOST}
    with httpx.Client(timeout=PATIENCE_SECONDS, verify=one.verifying) as client:
        try:
            return client.get(url, headers={"Host": HOST}, extensions=named).is_success
        except httpx.TransportError:
            return False


@contextmanager
def _server(given: Mapping[str, str], directory: Path) -> Iterator[int]:
    directory.mkdir()
    more = {"WORKERS": "2", "RUN_WORKER": "off"}
    with served("", directory, patient=False, **given | more) as one:
        yield one.port


@contextmanager
def _worker(given: Mapping[str, str], log: Path) -> Iterator[None]:
    environment = {f"CLAIM_LEDGER_{name}": text for name, text in given.items()}
    command = [sys.executable, "-c", "from service.cli import main; main()", "worker"]
    with (
        log.open("wb") as output,
        started(command, env=os.environ | environment, stdout=output, stderr=output),
    ):
        yield


@contextmanager
def _store(directory: Path) -> Iterator[str]:
    port, log, listings = free_port(), directory / "store.log", directory / LISTINGS
    listings.touch()
    buckets = [word for bucket in BUCKETS.values() for word in ("--bucket", bucket)]
    command = [sys.executable, "-m", "tests.counting_store", listings, directory / "store"]
    with (
        log.open("wb") as output,
        started([*command, "--port", str(port), *buckets], stdout=output, stderr=output),
    ):
        until(lambda: b"is serving" in log.read_bytes(), log.read_text)
        yield f"http://127.0.0.1:{port}"
