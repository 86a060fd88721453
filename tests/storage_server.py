"""A storage server on a real socket that misbehaves as a test chooses."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

ENDLESS_BYTES = 64 << 20
"""What a test takes for endless; far more than the sockets between the two hold."""

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answers(
    status: int, body: bytes, reason: str = "Whatever", more: str = "x-more: none"
) -> Behaviour:
    """Return every request so, with one header more, and keep the connection."""
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\n{more}\r\n"

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()

    return behave


async def hangs(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accept, read, and never answer."""
    while await reader.read(1000):
        pass


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reset the connection when a request arrives."""
    await reader.read(1000)
    writer.transport.abort()


async def ends_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Announce more than is sent."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
    await writer.drain()


async def drips_a_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the body byte by byte, so that no read ever times out."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n")
    await _drip(writer, b"{")


async def drips_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the headers byte by byte."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    await _drip(writer, b"x")


async def _drip(writer: asyncio.StreamWriter, byte: bytes) -> None:
    while True:
        writer.write(byte)
        await writer.drain()
        await asyncio.sleep(0.5)


class Endless:
    """Answers a request with a body that goes on for as long as anybody reads it."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.sent = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer."""
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {self.status} Whatever\r\n\r\n".encode())
        while self.sent < ENDLESS_BYTES:
            writer.write(bytes(1 << 20))
            await writer.drain()
            self.sent += 1 << 20


class StorageServer:
    """Behaves as its `behave` is set to; counts connections and keeps what was asked."""

    def __init__(self) -> None:
        self.behave: Behaviour = hangs
        self.connections = 0
        self.open = 0
        self.endpoint = ""
        self._tasks: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        self.connections += 1
        self.open += 1
        self._tasks.add(asyncio.current_task())
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.behave(reader, writer)
        finally:
            self._tasks.discard(asyncio.current_task())
            writer.close()
            self.open -= 1

    def stop(self) -> None:
        """Stop serving."""
        for task in self._tasks:
            if task is not None:
                task.cancel()


@asynccontextmanager
async def storage_server() -> AsyncGenerator[StorageServer, None]:
    """Run one."""
    one = StorageServer()
    listening = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.endpoint = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield one
    finally:
        listening.close()
        one.stop()
        await listening.wait_closed()
