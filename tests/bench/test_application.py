"""The section of the benchmark that needs no server of ours keeps running."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from service.operations.tracing import otlp
from tests.bench import application
from tests.otlp_receiver import receiver
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server


@contextmanager
def in_this_process() -> Iterator[str]:
    """Serve a collector here: what it costs is not measured in a test."""
    with receiver() as collector:
        yield collector.url


def test_claims_are_created(monkeypatch):
    """The application takes the requests that are handed to it; anything but a 201 raises."""
    monkeypatch.setattr(application, "CLAIMS", 5)
    monkeypatch.setattr(application, "receiver_process", in_this_process)
    monkeypatch.setattr(otlp, "CLOSE_SECONDS_MAX", PATIENCE_SECONDS)
    figures = application.application([1, 2], 1, lambda _line: None)
    assert {frozenset(by_clients) for by_clients in figures.values()} == {frozenset({"1", "2"})}
    # An export that goes on takes time of what is measured next, and opens sockets in other tests.
    assert [one for one in threading.enumerate() if one.name.startswith("Otel")] == []
