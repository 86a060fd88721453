"""The collector of whether the API answers at all: one that hangs cannot say so itself."""

import asyncio
from typing import Final

from service.operations.addresses import LIVE, reached_at
from service.operations.gauges import Collector, ScrapedGauges

SECONDS_MAX: Final = 2.0
"""For an answer that needs neither database nor room."""

_REQUEST: Final = f"GET {LIVE} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def api_collector(host: str, port: int) -> Collector:
    """Return the collector of the API that is served on an address of this machine."""

    async def collect(gauges: ScrapedGauges) -> None:
        gauges.set("api_up", await _answers(reached_at(host), port))

    return Collector("api", [("api_up",)], collect)


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(SECONDS_MAX):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(_REQUEST)
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except OSError:  # TimeoutError is one
        return False
