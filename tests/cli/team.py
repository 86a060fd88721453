"""The team's commands on a running `claim-ledger dev`."""

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import httpx
import psycopg

from service.app.bootstrap import Service
from service.cli.connect import token_of
from service.cli.dev.state import PEOPLE, DevState
from service.facts.caller import LEDGERS
from service.ledger.events import Cause
from tests.dev_process import Dev, run
from tests.no_tls import NO_TLS
from tests.patience import PATIENCE_SECONDS, until
from tests.world import service_on

EVENTS = """
select (select count(*) from accounts.events)
     + (select count(*) from live.events)
     + (select count(*) from test.events)
"""


BEHIND = """
select 1 from {0}.head as h, {0}.subscriptions as s
where s.position < h.size or exists (select from {0}.pending)
"""


T = TypeVar("T")


@dataclass
class Team:
    """Runs commands on a dev as the service's team.

    What a test needs and is not about, it sets up by a service of this process's own, on the same
    database: that takes a tenth of what commands take.
    """

    dev: Dev
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack)
    _own: tuple[Service, Cause] | None = None

    def end(self) -> None:
        """End the dev, and first our own service on its database."""
        self._runner.run(self._opened.aclose())
        self._runner.close()
        self.dev.end()

    def set_up(self, work: Callable[[Service, Cause], Awaitable[T]]) -> T:
        """Return what this makes with the service's parts, in the name of the dev's team."""
        return self._runner.run(self._with_service(work))

    async def _with_service(self, work: Callable[[Service, Cause], Awaitable[T]]) -> T:
        if self._own is None:
            settings = DevState.of_running(self.dev.data_dir).settings()
            service = await self._opened.enter_async_context(service_on(settings))
            staff_id = await service.staff.find(PEOPLE["team"])
            self._own = service, Cause(f"staff:{staff_id}", service.new_id("req", service.clock()))
        return await work(*self._own)

    def raw(self, *arguments: str | bytes) -> subprocess.CompletedProcess[str]:
        """Run a command on the dev."""
        return run(*arguments, "--data-dir", self.dev.data_dir)

    def raw_help(self, *group: str) -> str:
        """Return the help of a group of commands."""
        return run(*group, "--help").stdout

    def answer(self, *arguments: str | bytes) -> tuple[int, dict[str, Any]]:
        """Run a command with `--json`; return its exit code and the object that it printed."""
        done = self.raw(*arguments, "--json")
        assert done.stdout.count("\n") == 1
        answer = json.loads(done.stdout)
        assert isinstance(answer, dict)
        return done.returncode, answer

    def do(self, *arguments: str) -> dict[str, Any]:
        """Run a command that must succeed."""
        code, answer = self.answer(*arguments)
        assert code == 0, answer
        return answer

    def refused(self, *arguments: str | bytes) -> str:
        """Run a command that must be refused; return the code in its envelope."""
        code, answer = self.answer(*arguments)
        assert code == 1, answer
        assert {"error", "code", "message"} <= set(answer)
        return answer["code"]

    def events(self) -> int:
        """Return how many events all ledgers hold."""
        with psycopg.connect(self.dev.facts["database_url"]) as connection:
            row = connection.execute(EVENTS).fetchone()
        assert row is not None
        return row[0]

    def wait_for_followers(self) -> None:
        """Wait until everything that follows a log has come to its end, in every ledger.

        Of accounts first: what follows it appends to the ledger of test mode.
        """
        with psycopg.connect(self.dev.facts["database_url"], autocommit=True) as connection:
            for ledger in LEDGERS:
                behind = BEHIND.format(ledger)
                until(lambda behind=behind: connection.execute(behind).fetchone() is None)

    @contextmanager
    def unverified(self, ledger: str) -> Iterator[None]:
        """Keep the worker's verification from a ledger that a test alters for a while.

        It may look at that moment, and would show what it found long after that is mended.
        """
        with psycopg.connect(self.dev.facts["database_url"]) as holder:
            holder.execute(f"select from {ledger}.log_verification for update".encode())
            yield

    def call(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request with a partner's key."""
        return httpx.request(
            method,
            f"{self.dev.facts['base_url']}{path}",
            headers={"Authorization": f"Bearer {key}"},
            **more,
            timeout=PATIENCE_SECONDS,
            verify=NO_TLS,
        )

    def partner(self) -> tuple[str, str, str]:
        """Return a new approved partner and its live and test tokens."""

        async def made(service: Service, cause: Cause) -> tuple[str, str, str]:
            partner_id = await service.partners.add("A partner", mailbox(), cause)
            await service.partners.approve(partner_id, cause)
            await service.sandbox.ensure(partner_id)
            live = await service.partners.issue_key(partner_id, "live", cause)
            test = await service.partners.issue_key(partner_id, "test", cause)
            return partner_id, live.token, test.token

        return self.set_up(made)

    def entity(self, name: str = "A business", email: str | None = None) -> str:
        """Return the id of a new business."""

        async def made(service: Service, cause: Cause) -> str:
            entities = service.modes["live"].entities
            return await entities.add(name, email or mailbox(), None, cause)

        return self.set_up(made)

    def connect(self, link: str, entity_id: str) -> None:
        """Have a business approve a connect link."""

        async def made(service: Service, cause: Cause) -> None:
            await service.modes["live"].connections.approve(token_of(link), entity_id, cause)

        self.set_up(made)

    def move(self, claim_id: str, stage: str) -> None:
        """Move a live claim."""

        async def made(service: Service, cause: Cause) -> None:
            await service.modes["live"].claims.move(claim_id, stage, cause)

        self.set_up(made)

    def personal(self, claim_id: str) -> str:
        """Return what is left of a live claim's personal data: `readable` or `erased`."""

        async def found(service: Service, _cause: Cause) -> str:
            return (await service.modes["live"].claims.show(claim_id)).personal

        return self.set_up(found)

    def link(self, key: str) -> str:
        """Return a fresh connect link of a partner."""
        body = {"partner_user_id": "u"}
        return self.call(key, "POST", "/connect-requests", json=body).json()["connect_url"]


def mailbox() -> str:
    """Return an email address that is not in use yet."""
    return f"{uuid4().hex}@example.com"
