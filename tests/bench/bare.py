"""The bare server: the statements of `POST /claims` behind a response, and nothing else.

It parses no request, authenticates nobody and decides nothing: what is left is what asyncio and the
driver take for three round trips. Arguments: pgbench's script, its variables as JSON, the
database's URL, and a port.
"""

import asyncio
import json
import random
import re
import sys
from pathlib import Path
from typing import Any, cast

import asyncpg
import uvloop

RESPONSE = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_VARIABLE = re.compile(r"(?<!:):(\w+)(?=::|\W)")
_TYPES = {"p": "bigint", "a": "bigint", "b": "bigint"}

Statement = tuple[Any, list[str]]


def with_parameters(text: str) -> tuple[str, list[str]]:
    """Return a statement with parameters in place of pgbench's variables, and their names."""
    names = list(dict.fromkeys(_VARIABLE.findall(text)))

    def parameter(found: re.Match[str]) -> str:
        return f"${names.index(found[1]) + 1}::{_TYPES.get(found[1], 'text')}"

    return _VARIABLE.sub(parameter, text), names


class BareServer:
    """Runs the statements for each request, on connections that it keeps."""

    def __init__(self, script: str, given: dict[str, str], url: str) -> None:
        """`given` are pgbench's variables but those that its script draws."""
        text = re.sub(r"^\\set .*\n", "", script, flags=re.MULTILINE)
        self._statements = [with_parameters(one) for one in text.split(";\n") if one.strip()]
        self._given = given
        self._partners = int(given["partners"])
        self._url = url
        self._idle: list[list[Statement]] = []
        self._connections: list[asyncpg.Connection] = []

    async def answer(self, transport: asyncio.Transport) -> None:
        """Run the statements, and write the response."""
        statements = self._idle.pop() if self._idle else await self._connect()
        values: dict[str, Any] = self._given | {
            "p": random.randint(1, self._partners),  # noqa: S311 - load
            "a": random.getrandbits(62),
            "b": random.getrandbits(62),
        }
        for statement, names in statements:
            await statement.fetch(*[values[name] for name in names])
        self._idle.append(statements)
        transport.write(RESPONSE)

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            await connection.close()

    async def _connect(self) -> list[Statement]:
        connection = await asyncpg.connect(self._url)
        self._connections.append(connection)
        await connection.execute("set plan_cache_mode = force_generic_plan")
        return [(await connection.prepare(sql), names) for sql, names in self._statements]


class _Requests(asyncio.Protocol):
    def __init__(self, server: BareServer) -> None:
        self._server = server
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is of no such class

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET "):  # whether it runs
            self._transport.write(RESPONSE)
            return
        task = asyncio.create_task(self._server.answer(self._transport))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def serve(script: str, given: dict[str, str], url: str, port: int) -> None:
    """Serve until the process ends."""
    server = BareServer(script, given, url)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: _Requests(server), "127.0.0.1", port)
    await listening.serve_forever()


if __name__ == "__main__":
    script, given, url, port = sys.argv[1:]
    uvloop.run(serve(Path(script).read_text(), json.loads(given), url, int(port)))
