"""Gauges that are read anew at each scrape."""

import math

import pytest
from prometheus_client import CollectorRegistry, Gauge

from service.operations.scraped import ScrapedGauges


@pytest.fixture
def gauge():
    """Return a gauge with one label."""
    return Gauge("size", "A size.", ["ledger"], registry=CollectorRegistry())


def value(gauge, ledger):
    """Return a gauge's value."""
    return next(
        sample.value for sample in gauge.collect()[0].samples if sample.labels["ledger"] == ledger
    )


def test_what_a_scrape_could_not_read_is_unknown(gauge):
    """Until one can read it again; what was read stays."""
    readings, seen = ScrapedGauges(), []
    for names in (["live", "test"], ["live"], ["live", "test"]):
        scrape = readings.begin()
        for name in names:
            readings.set(gauge, 7, name)
        readings.end(scrape)
        seen.append([math.isnan(value(gauge, name)) for name in ("live", "test")])
    assert seen == [[False, False], [False, True], [False, False]]


def test_two_scrapes_at_once_do_not_undo_each_other(gauge):
    """What the one has read while the other runs is new to both, whichever ends first."""
    readings = ScrapedGauges()
    first, second = readings.begin(), readings.begin()
    readings.set(gauge, 1, "live")
    readings.end(second)
    readings.end(first)
    assert value(gauge, "live") == 1
