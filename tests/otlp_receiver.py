"""A collector of traces on the loopback: takes OTLP over HTTP, and can be slow."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from service.operations.tracing.otlp import OtlpExport
from service.operations.tracing.traces import Traces
from tests.patience import PATIENCE_SECONDS


class OtlpReceiver:
    """What has been received; while `answers` is not set, nobody is answered."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Event()
        self.bodies: list[bytes] = []
        self._received = threading.Condition()
        self.url = ""

    def take(self, body: bytes) -> None:
        """Take an export."""
        self.asked.set()
        self.answers.wait(PATIENCE_SECONDS)
        with self._received:
            self.bodies.append(body)
            self._received.notify_all()

    @property
    def spans(self) -> list[Span]:
        """Every span so far."""
        return [
            span
            for body in list(self.bodies)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def wait_for(self, *names: str) -> list[Span]:
        """Return every span as soon as each of these names is among them."""
        with self._received:
            came = self._received.wait_for(
                lambda: {*names} <= {span.name for span in self.spans}, PATIENCE_SECONDS
            )
        assert came, sorted({span.name for span in self.spans})
        return self.spans


def attributes(span: Span) -> dict[str, str | int]:
    """Return a span's attributes."""
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


def ended(traces: Traces) -> None:
    """Export what there is, and return when nothing of the export runs on."""
    exporting = queue_of(traces)._worker_thread  # noqa: SLF001 - it has no other end
    traces.close()
    exporting.join(PATIENCE_SECONDS)
    assert not exporting.is_alive()


def export_of(traces: Traces) -> OtlpExport:
    """Return what exports traces."""
    export = traces._export  # noqa: SLF001 - to look at its queue
    assert isinstance(export, OtlpExport)
    return export


def queue_of(traces: Traces) -> Any:
    """Return the library's queue of spans, and its thread."""
    return export_of(traces)._queue._batch_processor  # noqa: SLF001 - nothing shows it


@contextmanager
def receiver_process() -> Iterator[str]:
    """Serve a collector in a process of its own, which keeps nothing; yield its URL."""
    command = [sys.executable, "-m", "tests.otlp_receiver"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip()
        finally:
            process.stdin.close()  # which ends it


@contextmanager
def receiver() -> Iterator[OtlpReceiver]:
    """Serve a collector while the block runs."""
    received = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            received.take(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield received
    finally:
        received.answers.set()
        server.shutdown()
        server.server_close()
        serving.join()


if __name__ == "__main__":
    with receiver() as serving:
        serving.take = lambda _body: None
        print(serving.url, flush=True)  # noqa: T201 - for the process that started this one
        sys.stdin.read()
