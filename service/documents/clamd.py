"""Scanning by a `clamd`: its INSTREAM command, over TCP or a Unix socket, bounded both ways.

    → zINSTREAM, then chunks: four bytes of length (big-endian) and so many bytes; a zero ends it
    ← stream: OK | stream: <name> FOUND | <fault> ERROR

Command and reply each end in a NUL.

Written here because the clients on PyPI are synchronous, keep what they send in memory or have no
maintainer. On a plain socket, because a clamd that takes no more answers and hangs up on the rest,
which resets the connection, and asyncio's streams then forget what came before the reset.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from service.ledger.queue_runner import NotBefore

REPLY_BYTES_MAX: Final = 4096
NAME_CHARACTERS_MAX: Final = 200

_CLEAN: Final = "stream: OK"


class ScanFailed(NotBefore):
    """The scanner gave no verdict. str() quotes at most what it said, and nothing of the file."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the scanner gave no verdict: {said}", 0)


@dataclass(frozen=True, slots=True)
class Clamd:
    """A `clamd` at `tcp://host:port` or `unix:///socket`. Its caller sets the deadline."""

    url: str

    async def scan(self, chunks: AsyncIterator[bytes]) -> str | None:
        """Return what the scanner calls its finding, None for none.

        Raises ScanFailed, OSError where none is reached, and whatever `chunks` raises.
        """
        with await self._connected() as connection:
            takes_more = await _sent(connection, b"zINSTREAM\0")
            async for chunk in chunks:
                if chunk and takes_more:  # an empty one would end the file
                    size = len(chunk).to_bytes(4, "big")
                    takes_more = await _sent(connection, size + chunk)
                if not takes_more:
                    break
            if takes_more:
                await _sent(connection, bytes(4))
            return _verdict(await _reply(connection))

    async def _connected(self) -> socket.socket:
        url = urlsplit(self.url)
        if url.scheme == "unix":
            return await _connected(socket.AF_UNIX, unquote(url.path))
        loop = asyncio.get_running_loop()
        fault: OSError | None = None
        for family, _, _, _, address in await loop.getaddrinfo(
            url.hostname, url.port, type=socket.SOCK_STREAM
        ):
            try:
                return await _connected(family, address)
            except OSError as error:
                fault = error
        raise fault or OSError("the scanner's host has no address")


async def _connected(family: int, address: str | tuple[Any, ...]) -> socket.socket:
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:  # also where the scan is cancelled
        connection.close()
        raise
    return connection


async def _sent(connection: socket.socket, data: bytes) -> bool:
    """Send; return False where it has hung up, which it does behind an early answer."""
    try:
        await asyncio.get_running_loop().sock_sendall(connection, data)
    except ConnectionError:
        return False
    return True


async def _reply(connection: socket.socket) -> str:
    loop, reply = asyncio.get_running_loop(), b""
    while b"\0" not in reply:
        if len(reply) >= REPLY_BYTES_MAX:
            raise ScanFailed("a reply without an end")
        try:
            more = await loop.sock_recv(connection, REPLY_BYTES_MAX)
        except ConnectionError:
            more = b""
        if not more:
            raise ScanFailed("the connection ended without a reply")
        reply += more
    return reply.partition(b"\0")[0].decode(errors="replace").strip()


def _verdict(reply: str) -> str | None:
    if reply == _CLEAN:
        return None
    name = reply.removeprefix("stream: ").removesuffix(" FOUND")
    if not (reply.startswith("stream: ") and reply.endswith(" FOUND") and name):
        raise ScanFailed(_shown(reply))
    return _shown(name)


def _shown(text: str) -> str:
    safe = "".join(mark if mark.isascii() and mark.isprintable() else "?" for mark in text)
    return safe[:NAME_CHARACTERS_MAX]
