"""Gauges that are read anew at each scrape."""

import math

import pytest
from prometheus_client import CollectorRegistry

from service.operations.gauges import ScrapedGauges


@pytest.fixture
def gauges():
    """Return gauges in a registry of their own."""
    return ScrapedGauges(CollectorRegistry())


def size(gauges, ledger):
    """Return the size of a ledger's log, as the gauge has it."""
    samples = gauges.log_size.collect()[0].samples
    return next(sample.value for sample in samples if sample.labels["ledger"] == ledger)


def test_what_a_scrape_could_not_read_is_unknown(gauges):
    """Until a scrape can read it again; what was read stays."""
    seen = []
    for names in (["live", "test"], ["live"], ["live", "test"]):
        scrape = gauges.begin()
        for name in names:
            gauges.set(gauges.log_size, 7, name)
        gauges.end(scrape)
        seen.append([math.isnan(size(gauges, name)) for name in ("live", "test")])
    assert seen == [[False, False], [False, True], [False, False]]


def test_two_scrapes_at_once_do_not_undo_each_other(gauges):
    """What one reads while the other runs is current for both, whichever ends first."""
    first, second = gauges.begin(), gauges.begin()
    gauges.set(gauges.log_size, 1, "live")
    gauges.end(second)
    gauges.end(first)
    assert size(gauges, "live") == 1
