"""Gauges that are read at each scrape."""

import math

import pytest
from prometheus_client import CollectorRegistry

from service.operations.gauges import ScrapedGauges


@pytest.fixture
def registry():
    """Return a registry for the test."""
    return CollectorRegistry()


@pytest.fixture
def gauges(registry):
    """Return the gauges of the registry."""
    return ScrapedGauges(registry)


def size(registry, ledger):
    """Return a ledger log's size from the gauge."""
    return registry.get_sample_value("claim_ledger_log_size", {"ledger": ledger})


def test_an_unreadable_gauge_is_nan(gauges, registry):
    """It recovers with the next successful read; others are unaffected."""
    seen = []
    for names in (["live", "test"], ["live"], ["live", "test"]):
        scrape = gauges.begin()
        for name in names:
            gauges.set("log_size", 7, name)
        gauges.end(scrape)
        seen.append([math.isnan(size(registry, name)) for name in ("live", "test")])
    assert seen == [[False, False], [False, True], [False, False]]


def test_two_scrapes_at_once_do_not_undo_each_other(gauges, registry):
    """What either reads is current for both, whichever ends first."""
    first, second = gauges.begin(), gauges.begin()
    gauges.set("log_size", 1, "live")
    gauges.end(second)
    gauges.end(first)
    assert size(registry, "live") == 1
