"""A collector's answers are bounded, in bytes and in time, and only a 2xx is a success."""

import asyncio

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult

from service.operations.tracing import otlp
from service.operations.tracing.otlp import OtlpExport
from service.operations.tracing.traces import Traces
from tests.patience import PATIENCE_SECONDS, eventually
from tests.storage_server import (
    ENDLESS_BYTES,
    Endless,
    answers,
    drips_a_body,
    drips_headers,
    storage_server,
)

pytestmark = pytest.mark.server


@pytest.fixture
async def server():
    """Return a server that behaves as a test says."""
    async with storage_server() as one:
        yield one


async def exported(url: str) -> SpanExportResult:
    """Export one span, and return what came of it."""
    export = OtlpExport(url, "api")
    trace = Traces(export, 100).begin("x", is_request=False)
    with trace.opened():
        pass
    try:
        spans = list(export._spans(trace))  # noqa: SLF001 - its thread tells nobody what came of it
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await asyncio.to_thread(export._exporter.export, spans)  # noqa: SLF001 - as above
    finally:
        await asyncio.to_thread(export.close)


async def test_an_endless_answer_is_not_read(server):
    """Its head says what came of the call, and its body would be kept in memory."""
    for status, result in ((200, "SUCCESS"), (500, "FAILURE")):
        server.behave = endless = Endless(status)
        assert (await exported(server.endpoint)).name == result
        await eventually(lambda: not server.open)
        assert endless.sent < ENDLESS_BYTES, status


async def test_a_slow_answer_is_given_up(server, monkeypatch):
    """However it is slow, at the deadline of one export; a byte now and then does not extend it."""
    monkeypatch.setattr(otlp, "EXPORT_SECONDS_MAX", 0.7)  # the server drips sooner
    for behave in (drips_headers, drips_a_body):
        server.behave = behave
        assert await exported(server.endpoint) is SpanExportResult.FAILURE
        await eventually(lambda: not server.open)


async def test_a_redirect_is_a_failure(server):
    """It is not followed, and its spans are lost, which is logged."""
    server.behave = answers(307, b"")
    assert await exported(server.endpoint) is SpanExportResult.FAILURE


async def test_a_connection_is_kept_between_exports(server):
    """Each costs a handshake where there is TLS."""
    server.behave = answers(200, b"{}")
    calls = otlp._Session()  # noqa: SLF001 - an export is made of it
    for _ in range(3):
        await asyncio.to_thread(calls.request, "GET", server.endpoint, timeout=PATIENCE_SECONDS)
    assert server.connections == 1
    calls.close()
