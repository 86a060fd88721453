"""The export of traces to a collector, by OpenTelemetry's protocol over HTTP."""

import logging
import secrets
import threading
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from service.core.tracing import ATTRIBUTES, SpanRecord
from service.operations.tracing.traces import Trace
from service.storage.deadline import AbortableSession, CallFailed

QUEUE_MAX: Final = 4096
"""Spans that wait for the collector, about 4 MB; what comes beyond that displaces the oldest."""
BATCH_MAX: Final = 512
DELAY_MILLISECONDS: Final = 1000
EXPORT_SECONDS_MAX: Final = 5.0
"""For one batch, attempts included."""
ANSWER_BYTES_MAX: Final = 4096
"""An answer is empty, or says how many spans were refused, and why."""
CLOSE_SECONDS_MAX: Final = 2.0
"""For what is left when a process ends."""

_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_OK, _FAILED = Status(StatusCode.UNSET), Status(StatusCode.ERROR)

log = structlog.get_logger()


class OtlpExport:
    """Exports traces in a thread of its own."""

    def __init__(self, origin: str, process: str) -> None:
        """`origin` of the collector; `process` says which of ours this is: api or worker."""
        # Its lines would be many while a collector is away; _Watched has one for each change.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        self._exporter = _Watched(
            OTLPSpanExporter(
                endpoint=f"{origin}/v1/traces",
                timeout=EXPORT_SECONDS_MAX,
                compression=Compression.Gzip,
                session=_Session(),
            )
        )
        self._resource = Resource.create(
            {
                "service.name": f"claim-ledger-{process}",
                "service.namespace": "claim-ledger",
                "service.version": version("claim-ledger"),
                "service.instance.id": secrets.token_hex(8),
            }
        )
        self._scope = InstrumentationScope("claim-ledger", version("claim-ledger"))
        self._queue = BatchSpanProcessor(
            self._exporter,
            max_queue_size=QUEUE_MAX,
            max_export_batch_size=BATCH_MAX,
            schedule_delay_millis=DELAY_MILLISECONDS,
        )

    def add(self, trace: Trace) -> None:
        """Queue a trace's spans."""
        for made in self._spans(trace):
            self._queue.on_end(made)

    def close(self) -> None:
        """Export what there is for CLOSE_SECONDS_MAX, and drop the rest."""
        # A thread that nobody waits for at the end of the process, should a collector hang.
        closing = threading.Thread(target=self._queue.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS_MAX)
        if closing.is_alive():
            self._exporter.shutdown()

    def _spans(self, trace: Trace) -> Iterator[ReadableSpan]:
        context = _context(trace.trace_id, trace.span_id)
        kind = SpanKind.SERVER if trace.is_request else SpanKind.INTERNAL
        yield self._made(trace.span, context, trace.caller, kind, trace.span.ended)
        yield from self._below(trace.span, context, trace.span.ended)

    def _below(self, span: SpanRecord, parent: SpanContext, ended: int) -> Iterator[ReadableSpan]:
        for part in span.parts:
            context = _context(parent.trace_id, int.from_bytes(secrets.token_bytes(8)))
            kind = SpanKind.CLIENT if "db.system.name" in part.attributes else SpanKind.INTERNAL
            yield self._made(part, context, parent, kind, part.ended or ended)
            yield from self._below(part, context, ended)

    def _made(
        self,
        span: SpanRecord,
        context: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        ended: int,
    ) -> ReadableSpan:
        # The SDK makes these when a span of its own ends. Ours are kept until their trace does and
        # may belong to several, so they are made here; it also takes a third of the time.
        attributes = {name: it for name, it in span.attributes.items() if name in ATTRIBUTES}
        return ReadableSpan(
            name=span.name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            kind=kind,
            status=_FAILED if "error.type" in attributes else _OK,
            start_time=span.begun,
            end_time=ended,
            instrumentation_scope=self._scope,
        )


class _Session(requests.Session):
    """Calls a collector, each call within its timeout, which `requests` counts from byte to byte.

    It reads of an answer what one has at most, so that a connection is kept for the next call, and
    takes a redirect for a failure: the exporter would take it for a success.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls = AbortableSession()

    def request(self, *args: Any, timeout: Any, **given: Any) -> requests.Response:  # noqa: ANN401 - theirs
        calls, ends = self._calls, threading.Timer(timeout, self._give_up)
        ends.daemon = True
        ends.start()
        try:
            response = calls.request(
                *args, timeout=timeout, stream=True, verify=self.verify, cert=self.cert, **given
            )
            with response:
                response.raw.read(ANSWER_BYTES_MAX)
        finally:
            ends.cancel()
        if calls is not self._calls:  # what was read of it ended with the connection
            raise CallFailed("the deadline has passed")
        if HTTPStatus.MULTIPLE_CHOICES <= response.status_code < HTTPStatus.BAD_REQUEST:
            raise CallFailed(f"status {response.status_code}")
        return response

    def close(self) -> None:
        super().close()
        self._calls.close()

    def _give_up(self) -> None:
        calls, self._calls = self._calls, AbortableSession()
        calls.abort()


class _Watched(SpanExporter):
    """Logs once that the collector takes nothing, and once that it does again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._fails = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        fails = result is not SpanExportResult.SUCCESS
        if fails != self._fails:
            self._fails = fails
            if fails:
                log.warning("the collector takes no traces: they are dropped")
            else:
                log.warning("the collector takes traces again")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)
