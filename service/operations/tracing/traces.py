"""Traces begin here, and are exported when they end.

A trace is kept in this process until it ends. Then its spans go into a queue of bounded length,
which a thread empties: a collector that is slow or away costs spans, and no request waits for it.
"""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, Self

import structlog
from opentelemetry.trace import SpanContext, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.core.tracing import SpanRecord, within

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_ALL: Final = 100


@dataclass(slots=True)
class Trace:
    """A trace of this process: its first span, and whose it is a part."""

    span: SpanRecord
    trace_id: int
    span_id: int
    caller: SpanContext | None
    is_kept: bool
    """Whether it is recorded; if not, it has ids all the same."""
    is_request: bool

    @property
    def traceparent(self) -> str:
        """Return what W3C Trace Context says of this trace in a header."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.is_kept:02x}"

    @contextmanager
    def opened(self) -> Generator[Self]:
        """Record what the block does, and put the trace's ids on each of its log lines."""
        ids = {"trace_id": f"{self.trace_id:032x}", "span_id": f"{self.span_id:016x}"}
        kept = (self.span,) if self.is_kept else ()
        with structlog.contextvars.bound_contextvars(**ids), within(kept):
            try:
                yield self
            except BaseException as error:  # raised again
                self.span.fail(error)
                raise
            finally:
                self.span.end()


class Export(Protocol):
    """Where ended traces go."""

    def add(self, trace: Trace) -> None:
        """Take a trace, at once; drop it where there is no room."""
        ...

    def close(self) -> None:
        """Export what there is, for a moment; drop the rest."""
        ...


class Traces:
    """Begins and ends the traces of a process, of which it records so many in a hundred.

    Who calls says which trace a request belongs to, but not whether it is recorded.
    """

    def __init__(self, export: Export, percent: int) -> None:
        """`percent` from 0 to 100."""
        self._export = export
        self._percent = percent

    def begin(self, name: str, traceparent: str | None = None, *, is_request: bool) -> Trace:
        """Begin a trace, or continue the one that a caller's `traceparent` names."""
        caller = None
        if traceparent is not None:
            found = _PROPAGATOR.extract({"traceparent": traceparent})
            context = get_current_span(found).get_span_context()
            caller = context if context.is_valid else None
        drawn = secrets.token_bytes(24)
        trace_id = caller.trace_id if caller else int.from_bytes(drawn[:16])
        is_kept = self._percent == _ALL or secrets.randbelow(_ALL) < self._percent
        span_id = int.from_bytes(drawn[16:])
        return Trace(SpanRecord(name), trace_id, span_id, caller, is_kept, is_request)

    def end(self, trace: Trace) -> None:
        """Export a trace that is kept; wait for nothing."""
        if trace.is_kept:
            self._export.add(trace)

    def close(self) -> None:
        """Export what there is, for a moment."""
        self._export.close()
