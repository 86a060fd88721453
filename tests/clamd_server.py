"""A clamd on a real socket, as far as INSTREAM goes: it finds what contains MALICIOUS."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

MALICIOUS = b"a-test-signature"
NAME = "Test.Signature-1"


class ClamdServer:
    """Keeps what it was sent; `reply` is said instead of its own verdict, if it is set.

    Like the real one it refuses a stream of more than `bytes_max` at once, and hangs up on the
    rest, which resets the connection. After `ends_after` bytes it hangs up without a word.
    """

    def __init__(self) -> None:
        self.scanned: list[bytes] = []
        self.chunk_bytes_max = 0
        self.bytes_max = self.ends_after = 1 << 30
        self.reply: bytes | None = None
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one command."""
        with suppress(OSError, asyncio.IncompleteReadError):
            assert await reader.readexactly(10) == b"zINSTREAM\0"
            writer.write(await self._verdict(reader))
            await writer.drain()
        writer.close()

    async def _verdict(self, reader: asyncio.StreamReader) -> bytes:
        content = b""
        while size := int.from_bytes(await reader.readexactly(4), "big"):
            self.chunk_bytes_max = max(self.chunk_bytes_max, size)
            if len(content) + size > self.bytes_max:
                return b"INSTREAM size limit exceeded. ERROR\0"
            if len(content) + size > self.ends_after:
                return b""
            content += await reader.readexactly(size)
        self.scanned.append(content)
        if self.reply is not None:
            return self.reply
        return f"stream: {NAME} FOUND\0".encode() if MALICIOUS in content else b"stream: OK\0"


@asynccontextmanager
async def clamd_server(socket: Path | None = None) -> AsyncGenerator[ClamdServer, None]:
    """Run one, on loopback or on a Unix socket."""
    one = ClamdServer()
    if socket is None:
        listening = await asyncio.start_server(one.serve, "127.0.0.1", 0)
        one.url = f"tcp://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    else:
        listening = await asyncio.start_unix_server(one.serve, socket)
        one.url = f"unix://{socket}"
    try:
        yield one
    finally:
        listening.close()
        await listening.wait_closed()
