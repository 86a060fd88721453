"""A service for one test, and its people: partners with keys, and their customers."""

import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from litestar.routes import BaseRoute

from service.app.background import background
from service.app.bootstrap import Service
from service.app.operations import scrapes
from service.app.settings import SERVE, Settings
from service.app.web import web_app
from service.ledger import database
from service.ledger.events import Cause
from service.mail.transport import mail_transport
from service.operations.address_middleware import AddressMiddleware
from service.operations.admission_middleware import AdmissionMiddleware
from service.operations.body_middleware import BodyMiddleware
from service.operations.by_path import ByPath
from service.operations.metrics import Metrics
from service.operations.request_middleware import RequestMiddleware
from service.operations.scrapes import Scrapes
from service.sandbox.fixtures import Fixtures
from tests.conformance import conforms
from tests.databases import with_logins
from tests.histories import History, RecordingTransport
from tests.patience import PATIENCE_SECONDS

MASTER_KEY = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
PUBLIC_URL = "https://api.example.com"
STAFF = Cause("system:dev", "req_test")
"""Who does in tests what the team does: nobody whom `audit verify` would have to find."""
TEAM = "team@example.com"
"""Who runs the team's commands on a test's installation, once they are added to its team."""

EVERY_ANSWER: dict[str, list[Callable[..., Any]]] = {"response": [conforms]}
"""Hooks of the clients: each answer is held against the OpenAPI document."""

_numbers = count(1)


def settings_for(database_url: str, mail_dir: Path, **given: str) -> Settings:
    """Return settings for a test's database; `given` are added to them, without their prefix.

    A directory to publish to is made, as whoever installs the service does.
    """
    values = {
        "DATABASE_URL": database_url,
        "MASTER_KEYS": MASTER_KEY,
        "PUBLIC_URL": PUBLIC_URL,
        "SMTP_URL": mail_dir.as_uri(),
        "RATE_LIMIT_PER_MINUTE": "100000",
    } | given
    environment = {f"CLAIM_LEDGER_{name}": value for name, value in with_logins(values).items()}
    settings = Settings.from_environment(environment, require=SERVE)
    if "ARCHIVE_URL" in given and given["ARCHIVE_URL"].startswith("file:"):
        Path(unquote(urlsplit(given["ARCHIVE_URL"]).path)).mkdir(mode=0o700, exist_ok=True)
    return settings


def claim_body(entity_id: str, partner_claim_id: str = "case-1", **more: Any) -> dict[str, Any]:
    """Return a small valid claim."""
    return {
        "entity_id": entity_id,
        "partner_claim_id": partner_claim_id,
        "defendant": {"name": "Debtor"},
        "invoices": [{"number": "INV-1", "total_amount_for_invoice": "10.00"}],
    } | more


@dataclass
class Partner:
    """An approved partner with a key in each mode, calling through one client."""

    world: "World"
    partner_id: str
    keys: dict[str, str] = field(default_factory=dict)

    async def call(
        self, method: str, path: str, *, mode: str = "live", **more: Any
    ) -> httpx.Response:
        """Send a request with this partner's key."""
        headers = {"Authorization": f"Bearer {self.keys[mode]}"} | more.pop("headers", {})
        return await self.world.client.request(method, f"/v1{path}", headers=headers, **more)

    async def claim(self, entity_id: str, reference: str = "case-1", **more: Any) -> httpx.Response:
        """Create a small claim."""
        mode = more.pop("mode", "live")
        body = claim_body(entity_id, reference, **more)
        return await self.call("POST", "/claims", mode=mode, json=body)

    async def sandbox(self) -> Fixtures:
        """Return the entities of this partner's sandbox, made unless a follower has."""
        return await self.world.service.sandbox.ensure(self.partner_id)

    async def connected_entity(self) -> str:
        """Return a live entity that has approved this partner's link."""
        entity_id = await self.world.entity()
        await self.connect(entity_id)
        return entity_id

    async def connect(self, entity_id: str) -> None:
        """Request a link and have it approved."""
        answer = await self.call("POST", "/connect-requests", json={"partner_user_id": "u"})
        token = answer.json()["connect_url"].rpartition("/")[2]
        with self._recorded("connect", entity_id):
            await self.world.service.modes["live"].connections.approve(token, entity_id, STAFF)

    async def disconnect(self, entity_id: str) -> None:
        """End the connection as the customer."""
        live = self.world.service.modes["live"].connections
        with self._recorded("disconnect", entity_id):
            await live.disconnect(entity_id, self.partner_id, STAFF)

    def _recorded(self, op: str, entity_id: str) -> AbstractContextManager[None]:
        history = self.world.history
        if history is None:
            return nullcontext()
        return history.command(op, f"pk_live_{self.partner_id}", entity_id)


@contextmanager
def deadline_of(world: "World", seconds: float) -> Iterator[None]:
    """Set the database deadline of operations that begin inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        for ledger in world.service.ledgers:
            for pool in ledger.database.pools.values():
                patch.setattr(pool, "deadline_seconds", seconds)
        for mode in world.service.modes.values():
            batcher = mode.claims._batcher  # noqa: SLF001 - has its own deadline, of the same length
            patch.setattr(batcher, "_deadline", seconds)
        yield


def _admitted(app: BodyMiddleware) -> AdmissionMiddleware:
    assert isinstance(app.app, AddressMiddleware)
    assert isinstance(app.app.app, AdmissionMiddleware)
    return app.app.app


@dataclass
class World:
    """A service in this process on a database of its own, with a client."""

    service: Service
    mail_dir: Path
    history: History | None = None
    """What is recorded, if it is set before the first call."""

    @cached_property
    def app(self) -> BodyMiddleware:
        """The application, built on first use because that takes a moment.

        It refuses nobody because it is slow, unless a test is about that.
        """
        app = web_app(self.service, self.metrics, None, late_pages=True)
        admission = _admitted(app).admission
        for lane in (admission.reads, admission.writes):
            lane.wait_seconds_max = math.inf
        return app

    @property
    def admitted(self) -> AdmissionMiddleware:
        """What the application passes the requests to whose address is ours."""
        return _admitted(self.app)

    @property
    def observed(self) -> RequestMiddleware:
        """What the application passes the requests to that it admits."""
        assert isinstance(self.admitted.app, RequestMiddleware)
        return self.admitted.app

    @property
    def routes(self) -> list[BaseRoute]:
        """Whatever is routed, of programs and of people."""
        by_path = self.observed.app
        assert isinstance(by_path, ByPath)
        return [*by_path.app.routes, *by_path.other.routes]

    @cached_property
    def metrics(self) -> Metrics:
        """What the application counts."""
        return Metrics()

    @cached_property
    def scrapes(self) -> Scrapes:
        """What the operations listener reads."""
        return scrapes(self.service, [self.metrics.registry], [])

    async def scrape(self) -> str:
        """Return the metrics as of now, as Prometheus reads them."""
        _ = self.app  # where it counts
        return (await self.scrapes.make()).exposition.decode()

    @cached_property
    def client(self) -> httpx.AsyncClient:
        """A client whose calls raise the application's uncaught exceptions."""
        return self.calling_from("127.0.0.1")

    def calling_from(self, address: str) -> httpx.AsyncClient:
        """Return a client at another network address; failed authentications count by address."""
        asgi = httpx.ASGITransport(self.app, raise_app_exceptions=True, client=(address, 4711))
        transport = RecordingTransport(asgi, self.history) if self.history else asgi
        return httpx.AsyncClient(transport=transport, base_url=PUBLIC_URL, event_hooks=EVERY_ANSWER)

    async def partner(self) -> Partner:
        """Return a new approved partner."""
        number = next(_numbers)
        commands = self.service.partners
        partner_id = await commands.add(f"Partner {number}", f"p{number}@example.com", STAFF)
        await commands.approve(partner_id, STAFF)
        live = await commands.issue_key(partner_id, "live", STAFF)
        test = await commands.issue_key(partner_id, "test", STAFF)
        return Partner(self, partner_id, {"live": live.token, "test": test.token})

    async def connected(self) -> tuple[Partner, str]:
        """Return a new approved partner, and the id of a business that is connected to it."""
        partner = await self.partner()
        return partner, await partner.connected_entity()

    async def entity(self) -> str:
        """Return a new established live entity."""
        number = next(_numbers)
        live = self.service.modes["live"].entities
        return await live.add(f"Business {number}", f"b{number}@example.com", None, STAFF)


def service_on(settings: Settings) -> AbstractAsyncContextManager[Service]:
    """Open the parts of a service, without its background tasks, and with a long deadline."""
    return Service(settings, deadline_seconds=PATIENCE_SECONDS).opened()


@asynccontextmanager
async def world_on(
    settings: Settings,
    mail_dir: Path,
    *,
    follow: bool = True,
    background_size: int = 1,
    **parts: Any,
) -> AsyncGenerator[World, None]:
    """Run the whole application in this process, sequencer and subscribers included.

    `follow` False leaves those out. `parts` are the service's own: clock, new_id, deadline_seconds.
    The deadline is long unless a test is about it: other tests share the machine.
    """
    parts.setdefault("deadline_seconds", PATIENCE_SECONDS)
    with pytest.MonkeyPatch.context() as patch:
        # Subscribers take turns: most tests have little to follow, and connecting takes a while.
        patch.setattr(database, "BACKGROUND_SIZE", background_size)
        service = Service(settings, **parts)
    followers = background(service, mail_transport(settings.smtp_url))
    async with service.opened():
        if follow:
            followers.start()
        yield World(service, mail_dir)
        await followers.stop()
