"""Gauges that each scrape reads anew: what could not be read is NaN, and no old value stands in."""

import math
from typing import Final

from prometheus_client import Gauge

UNKNOWN: Final = math.nan
"""No comparison with it holds, so an alarm is silent where another one tells that nothing is read.
A series cannot be taken back instead where several processes share their metrics."""


class ScrapedGauges:
    """What scrapes have set. Several may run at once: what one of them reads is as new to all."""

    def __init__(self) -> None:
        """Nothing is set yet."""
        self._scrape = 0
        self._set_in: dict[Gauge, int] = {}  # bounded by the metrics' labels

    def begin(self) -> int:
        """Begin a scrape; answer its number, for `end`."""
        self._scrape += 1
        return self._scrape

    def set(self, gauge: Gauge, value: float, *labels: str) -> None:
        """Set a gauge to what was read."""
        child = gauge.labels(*labels) if labels else gauge
        child.set(value)
        self._set_in[child] = self._scrape

    def end(self, scrape: int) -> None:
        """Make every gauge unknown that was set before, and not since this scrape began."""
        for child, set_in in self._set_in.items():
            if set_in < scrape:
                child.set(UNKNOWN)
