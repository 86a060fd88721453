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

from service.core.garbage import leave_out_what_is_there
from service.facts.connections import connection_stream
from service.ledger.sql import Sql, queries
from service.ledger.traced import statement_span
from tests.bench.load import MARK
from tests.bench.post_claims import claim_body
from tests.memory_ledger import memory_service
from tests.otlp_receiver import ended, receiver_process
from tests.world import PUBLIC_URL, World, settings_for

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
_STREAMS = 9
"""The place among the arguments of `write` of the streams that it appends to."""
CLAIMS = 1500
"""In each round."""


def application(
    clients: Sequence[int], rounds: int, say: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """Return the CPU of a claim in microseconds, for so many requests at once.

    `traced`: with a collector that takes every trace, whose own CPU is not in it.
    """
    say("application")
    plain = uvloop.run(_measured(clients, rounds))
    say("application, traced")
    with receiver_process() as url:
        traced = uvloop.run(_measured(clients, rounds, OTLP_URL=url, TRACED_PERCENT="100"))
        say("application, one trace in ten")
        tenth = uvloop.run(_measured(clients, rounds, OTLP_URL=url, TRACED_PERCENT="10"))
    return {
        "cpu_us_per_claim": plain,
        "cpu_us_per_claim_traced": traced,
        "cpu_us_per_claim_one_in_ten_traced": tenth,
    }


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


async def _measured(clients: Sequence[int], rounds: int, **given: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        settings = settings_for(NOWHERE, Path(name), **given)
        world = World(memory_service(settings), Path(name))
        async with world.service.opened():
            partner, entity_id = await world.connected()
            database = world.service.modes["live"].ledger.database
            await _keep_nothing(database, partner, entity_id)
            if given:
                _trace(database, "live")
                _trace(world.service.accounts.database, "accounts")
            caller = Caller(world.app, partner.keys["live"], claim_body(entity_id))
            await caller.cpu_of(1)
            gc.collect()
            leave_out_what_is_there()
            figures = {
                str(number): round(
                    statistics.median([await caller.cpu_of(number) for _ in range(rounds)]), 1
                )
                for number in clients
            }
            if given:
                # Its thread would export beside what is measured next.
                await asyncio.to_thread(ended, world.admitted.app.traces)
            return figures


def _trace(database: Any, schema: str) -> None:
    """Have the statements recorded as on PostgreSQL."""
    fetch, fetchrow = database.fetch, database.fetchrow

    async def traced(sql: Sql, *args: Any) -> Any:
        with statement_span(sql, schema):
            return await fetch(sql, *args)

    async def traced_row(sql: Sql, *args: Any) -> Any:
        with statement_span(sql, schema):
            return await fetchrow(sql, *args)

    database.fetch, database.fetchrow = traced, traced_row


async def _keep_nothing(database: Any, partner: Any, entity_id: str) -> None:
    """Have the ledger answer as if each claim were its first, at no cost."""
    context = queries("service.claims").context
    connection = connection_stream("live", partner.partner_id, entity_id)
    (row,) = await database.fetch(context, [entity_id], [connection], [None], b"")

    async def fetch(sql: Sql, *args: Any) -> list[Any]:
        await asyncio.sleep(0)
        return [row] * len(args[0]) if sql.name == context.name else []

    async def fetchrow(_sql: Sql, commands: int, *values: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        streams = values[_STREAMS - 2]
        return {"outcomes": ["written"] * commands, "append_ids": [*range(1, len(streams) + 1)]}

    database.fetch, database.fetchrow = fetch, fetchrow
