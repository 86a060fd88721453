"""Traces by the settings: where none are configured, none of their parts is even imported."""

from typing import TYPE_CHECKING

from service.app.settings import Settings
from service.ledger.following.runner import Around, Step

if TYPE_CHECKING:
    from litestar.types import ASGIApp

    from service.operations.tracing.traces import Traces


def traces_for(settings: Settings, process: str) -> "Traces | None":
    """Return the traces of a process, `api` or `worker`; None where no collector is configured.

    It starts a thread: no process that has it may fork.
    """
    if settings.otlp_url is None:
        return None
    from service.operations.tracing.otlp import OtlpExport
    from service.operations.tracing.traces import Traces

    return Traces(OtlpExport(settings.otlp_url, process), settings.traced_percent)


def traced_app(app: "ASGIApp", traces: "Traces") -> "ASGIApp":
    """Return an application whose requests are traced."""
    from service.operations.tracing.middleware import TracingMiddleware

    return TracingMiddleware(app, traces)


def traced_steps(traces: "Traces") -> Around:
    """Return what makes a step of the worker a trace of its own, where it did something."""

    def traced(name: str, step: Step) -> Step:
        async def run() -> int | None:
            done, trace = 0, traces.begin(name, is_request=False)
            try:
                with trace.opened():
                    done = await step()
            finally:
                if done or "error.type" in trace.span.attributes:
                    trace.span.note(claim_ledger__handled=done)
                    traces.end(trace)
            return done

        return run

    return traced
