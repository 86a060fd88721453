"""Scanning by a `clamd`: its INSTREAM command, over TCP or a Unix socket, bounded both ways.

    → zINSTREAM, then chunks: four bytes of length (big-endian) and so many bytes; a zero ends it
    ← stream: OK | stream: <name> FOUND | <fault> ERROR

Command and reply each end in a NUL.

Written here because the clients on PyPI are synchronous, keep what they send in memory or have no
maintainer.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

REPLY_BYTES_MAX: Final = 4096
NAME_CHARACTERS_MAX: Final = 200

_CLEAN: Final = "stream: OK"


class ScanFailed(Exception):
    """The scanner gave no verdict. str() quotes at most what it said, and nothing of the file."""


@dataclass(frozen=True, slots=True)
class Clamd:
    """A `clamd` at `tcp://host:port` or `unix:///socket`. Its caller sets the deadline."""

    url: str

    async def scan(self, chunks: AsyncIterator[bytes]) -> str | None:
        """Return what the scanner calls its finding, None for none.

        Raises ScanFailed, OSError, and whatever `chunks` raises.
        """
        reader, writer = await self._connect()
        try:
            # It answers early, and hangs up, where a file is larger than it takes: read that.
            with suppress(ConnectionError):
                writer.write(b"zINSTREAM\0")
                async for chunk in chunks:
                    writer.write(len(chunk).to_bytes(4, "big") + chunk)
                    await writer.drain()
                writer.write(bytes(4))
                await writer.drain()
            return _verdict(await _reply(reader))
        finally:
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = urlsplit(self.url)
        if url.scheme == "unix":
            return await asyncio.open_unix_connection(unquote(url.path), limit=REPLY_BYTES_MAX)
        return await asyncio.open_connection(url.hostname, url.port, limit=REPLY_BYTES_MAX)


async def _reply(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\0"))[:-1].decode(errors="replace").strip()
    except asyncio.LimitOverrunError:
        raise ScanFailed("a reply without an end") from None
    except asyncio.IncompleteReadError:
        raise ScanFailed("the connection ended without a reply") from None


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
