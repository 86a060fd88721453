"""The lines that the service logs, as bytes of JSON, in the process of a test."""

import io
import logging
from collections.abc import Generator
from contextlib import contextmanager

import structlog

from service.core import logs


def log_plainly() -> None:
    """Log to stdout as structlog does by itself, but for tracebacks: rich draws one for 50 ms."""
    structlog.reset_defaults()
    *others, _ = structlog.get_config()["processors"]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, renderer])


@contextmanager
def logged() -> Generator[io.BytesIO]:
    """Log to a stream as the service does; restore the configuration afterwards.

    No logger keeps it: one that did would log there for the rest of the run, unseen by others.
    """
    root, stream = logging.getLogger(), io.BytesIO()
    before = (root.level, root.handlers[:])
    logs.configure("info", stream)
    structlog.configure(cache_logger_on_first_use=False)
    try:
        yield stream
    finally:
        root.level, root.handlers = before
        structlog.contextvars.clear_contextvars()
        log_plainly()
