"""An asyncio TCP proxy for PostgreSQL that counts round trips and can lose answers."""

import asyncio
import re
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_WRITE = re.compile(r"from \w+\.write\(")


@dataclass
class DatabaseProxy:
    """The proxy and its traffic. `statements` has the text of each round trip's statement.

    A round trip ends with a message that asks the server to answer: Query, Sync or Flush.
    """

    host: str
    port: int
    cut_commits: int = 0
    """How many commits from now on lose their answer, and with it their connection.

    A commit is a COMMIT, or the statement that writes commands in a transaction of its own.
    """
    lost_answers: int = 0
    """How many statements from now on are not answered, although both connections stay open."""
    cuts: int = 0
    cancels: int = 0
    """How many CancelRequests have come."""
    statements: list[str] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection, message by message towards the server."""
        try:
            up_reader, up_writer = await asyncio.open_connection(self.host, self.port)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, up_writer}
        link = _Link(self, writer, up_writer)
        back = asyncio.create_task(link.carry_back(up_reader))
        try:
            await link.carry_forth(reader)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for one in (writer, up_writer):
                one.close()
            with suppress(OSError):
                await back

    def cut_off(self) -> None:
        """End every connection, as a network failure would."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()


class _Link:
    def __init__(
        self, proxy: DatabaseProxy, down: asyncio.StreamWriter, up: asyncio.StreamWriter
    ) -> None:
        self._proxy, self._down, self._up = proxy, down, up
        self._names: dict[bytes, str] = {}
        self._current = ""
        self._losing = self._swallowing = False
        self._writes = False

    async def carry_forth(self, reader: asyncio.StreamReader) -> None:
        await self._carry_start(reader)
        while True:
            head = await reader.readexactly(5)
            body = await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)
            self._note(head[:1], body)
            self._up.write(head + body)
            await self._up.drain()

    async def _carry_start(self, reader: asyncio.StreamReader) -> None:
        """Forward SSLRequest and StartupMessage, which have no type byte."""
        while True:
            length = await reader.readexactly(4)
            body = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
            self._up.write(length + body)
            (code,) = struct.unpack("!I", body[:4])
            self._proxy.cancels += code == 80877102
            if code != 80877103:  # SSLRequest, refused in one byte
                return

    def _note(self, kind: bytes, body: bytes) -> None:
        parts = body.split(b"\0")
        if kind == b"Q":
            self._current = parts[0].decode()
        elif kind == b"P":
            self._names[parts[0]] = self._current = parts[1].decode()
        elif kind == b"B":
            self._current = self._names.get(parts[1], "")
            self._writes = _WRITE.search(self._current) is not None
        if kind in {b"Q", b"S", b"H"}:
            self._proxy.statements.append(self._current)
            if self._proxy.lost_answers:
                self._proxy.lost_answers -= 1
                self._swallowing = True
            commits = self._writes or self._current.rstrip(";").upper() == "COMMIT"
            self._writes = False
            if commits and self._proxy.cut_commits:
                self._proxy.cut_commits -= 1
                self._losing = True

    async def carry_back(self, reader: asyncio.StreamReader) -> None:
        while data := await _some(reader):
            if self._losing:  # the server has answered, so it has committed
                self._proxy.cuts += 1
                self._down.transport.abort()
                self._up.close()
                return
            if not self._swallowing:
                self._down.write(data)
        self._down.close()


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65536)
    except OSError:
        return b""


@asynccontextmanager
async def proxied(database_url: str) -> AsyncGenerator[tuple[DatabaseProxy, str], None]:
    """Return a proxy for a database, and the database's URL through it."""
    parts = urlsplit(database_url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = DatabaseProxy(parts.hostname, parts.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield proxy, database_url.replace(f":{parts.port}/", f":{port}/")
    finally:
        server.close()
        proxy.cut_off()
        await asyncio.sleep(0.01)
