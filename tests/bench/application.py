"""CPU of the application alone for a claim: no server, no PostgreSQL, no Redis.

Other work on the machine moves this figure by a few percent only, so it is what a change of the
application is measured by. The rest of a claim's CPU is the server's and the drivers'.
"""

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvloop

from service.app.serve import GC_THRESHOLD
from service.ledger.sql import Sql, queries
from tests.bench.load import MARK
from tests.bench.post_claims import claim_body
from tests.memory_ledger import memory_world
from tests.world import PUBLIC_URL

CLAIMS = 1500
"""In each round."""


def application(
    clients: Sequence[int], rounds: int, say: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Return the CPU of a claim in microseconds, for so many requests at once."""
    say("application")
    return {"cpu_us_per_claim": uvloop.run(_measured(clients, rounds))}


@dataclass
class Caller:
    """Sends claims to the application as a server would."""

    app: Any
    token: str
    body: bytes
    numbers: count = field(default_factory=count)

    async def cpu_of(self, clients: int) -> float:
        """Create claims, so many at once; return the microseconds of each."""
        begun, left = time.process_time(), iter(range(CLAIMS))
        await asyncio.gather(*(self._one_by_one(left) for _ in range(clients)))
        return (time.process_time() - begun) / CLAIMS * 1e6

    async def _one_by_one(self, left: Any) -> None:
        for _ in left:
            await self._create()

    async def _create(self) -> None:
        body = self.body.replace(MARK.encode(), f"case-{next(self.numbers):015}".encode())
        headers = {
            "host": urlsplit(PUBLIC_URL).netloc,
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "content-length": str(len(body)),
        }
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/v1/claims",
            "raw_path": b"/v1/claims",
            "root_path": "",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 4711),
            "server": ("127.0.0.1", 80),
        }
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        await self.app(scope, receive, send)
        if statuses != [201]:
            raise RuntimeError(f"a claim was answered with {statuses}")


async def _measured(clients: Sequence[int], rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        world = memory_world(Path(name))
        async with world.service.opened():
            partner = await world.partner()
            entity_id = await partner.connected_entity()
            await _keep_nothing(world.service.modes["live"].ledger.database, partner, entity_id)
            caller = Caller(world.app, partner.keys["live"], claim_body(entity_id))
            await caller.cpu_of(1)
            gc.collect()
            gc.freeze()
            gc.set_threshold(GC_THRESHOLD)
            return {
                str(number): round(
                    statistics.median([await caller.cpu_of(number) for _ in range(rounds)]), 1
                )
                for number in clients
            }


async def _keep_nothing(database: Any, partner: Any, entity_id: str) -> None:
    """Have the ledger answer as if each claim were its first, at no cost."""
    context = queries("service.claims").context
    (row,) = await database.fetch(context, [partner.partner_id], [entity_id], [None])

    async def fetch(sql: Sql, *args: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [row] * len(args[0]) if sql.name == context.name else []

    async def fetchrow(_sql: Sql, commands: int, *_values: object) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"outcomes": ["written"] * commands, "append_ids": []}

    database.fetch, database.fetchrow = fetch, fetchrow
