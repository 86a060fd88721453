"""Gauges that are read anew at each scrape."""

import math

import pytest
from prometheus_client import CollectorRegistry

from service.operations.gauges import ScrapedGauges


@pytest.fixture
def registry():
    """Return a registry of its own."""
    return CollectorRegistry()


@pytest.fixture
def gauges(registry):
    """Return the gauges of the registry."""
    return ScrapedGauges(registry)


def size(registry, ledger):
    """Return the size of a ledger's log, as the gauge has it."""
    return registry.get_sample_value("claim_ledger_log_size", {"ledger": ledger})


def test_what_a_scrape_could_not_read_is_unknown(gauges, registry):
    """Until a scrape can read it again; what was read stays."""
    seen = []
    for names in (["live", "test"], ["live"], ["live", "test"]):
        scrape = gauges.begin()
        for name in names:
            gauges.set("log_size", 7, name)
        gauges.end(scrape)
        seen.append([math.isnan(size(registry, name)) for name in ("live", "test")])
    assert seen == [[False, False], [False, True], [False, False]]


def test_two_scrapes_at_once_do_not_undo_each_other(gauges, registry):
    """What one reads while the other runs is current for both, whichever ends first."""
    first, second = gauges.begin(), gauges.begin()
    gauges.set("log_size", 1, "live")
    gauges.end(second)
    gauges.end(first)
    assert size(registry, "live") == 1
