"""The section of the benchmark that needs no server keeps running."""

from tests.bench import application


def test_claims_are_created(monkeypatch):
    """The application takes the requests that are handed to it; anything but a 201 raises."""
    monkeypatch.setattr(application, "CLAIMS", 5)
    figures = application.application([1, 2], 1, lambda _line: None)
    assert figures["cpu_us_per_claim"].keys() == {"1", "2"}
