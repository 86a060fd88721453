"""Whether the API answers is asked from beside it."""

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from service.operations.collectors import api
from service.operations.collectors.api import api_collector
from service.operations.gauges import ScrapedGauges
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port

pytestmark = pytest.mark.server


async def up(host: str, port: int) -> float | None:
    """Return the gauge after a scrape."""
    registry = CollectorRegistry()
    await api_collector(host, port).collect(ScrapedGauges(registry))
    return registry.get_sample_value("claim_ledger_api_up")


async def test_an_api_is_up_where_it_says_that_it_lives(monkeypatch):
    """Not where nobody listens, where it answers an error, or where it accepts and hangs."""
    monkeypatch.setattr(api, "SECONDS_MAX", 0.1)
    hung = asyncio.Event()

    async def answer(status: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        await reader.readuntil(b"\r\n\r\n")
        if not status:
            await hung.wait()
        writer.write(b"HTTP/1.1 " + status + b" .\r\n\r\n")
        writer.close()

    seen = [await up("127.0.0.1", free_port())]
    for status in (b"503", b"", b"200"):
        if status == b"200":
            monkeypatch.setattr(api, "SECONDS_MAX", PATIENCE_SECONDS)
        served = await asyncio.start_server(
            lambda r, w, status=status: answer(status, r, w), "127.0.0.1", 0
        )
        async with served:
            seen.append(await up("0.0.0.0", served.sockets[0].getsockname()[1]))
            hung.set()
    assert seen == [0, 0, 0, 1]
