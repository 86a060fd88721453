"""What a scrape returns, made once for all who ask for it at about the same time."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector as Source

from service.core.shared import Shared
from service.ledger.database import is_infrastructure_error
from service.operations.gauges import FAULTY, UNKNOWN, Collector, ScrapedGauges

COLLECTOR_SECONDS_MAX: Final = 4.0
"""For all that a collector reads: Prometheus drops a scrape after ten seconds, and with it the
figures that would say what hangs."""
FRESH_SECONDS_MIN: Final = 1.0
FRESH_SECONDS_MAX: Final = 15.0
"""What a scrape returned is returned again for nine times as long as it took to make: however many
series there are, and however often somebody asks, that is a tenth of a processor. Above the most,
a figure would be older than the interval of most scrapes."""
FRESH_FOR_EACH_SECOND: Final = 9.0

_COLLECTOR_UP: Final = "collector_up"

log = structlog.get_logger()


class Scrape(NamedTuple):
    """The figures of a moment."""

    exposition: bytes
    """The text that Prometheus reads."""
    health: Mapping[str, Any]
    """The same for people: `status`, `faults`, what could not be read (`unread`), `figures`."""

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is known to be wrong, and all that could be was read."""
        return self.health["status"] == "ok"


class Scrapes:
    """Reads the figures of the database, and adds what the processes count."""

    def __init__(self, collectors: Sequence[Collector], counted: Sequence[Source]) -> None:
        """Take the registries, or other sources, of what processes count (`counted`)."""
        registry = CollectorRegistry()
        self._gauges = ScrapedGauges(registry)
        for one in collectors:
            self._gauges.expect([(_COLLECTOR_UP, one.name), *one.figures])
        self._collectors = collectors
        self._failing: dict[str, str] = {}  # the type of the error, by the collector's name
        self._sources = (*counted, registry)
        self._latest = Shared(self.make, fresh_seconds)

    async def latest(self) -> Scrape:
        """Return figures of now or of a moment ago."""
        return await self._latest.get()

    async def make(self) -> Scrape:
        """Return figures of now; a figure that cannot be read is NaN."""
        gauges = self._gauges
        begun = gauges.begin()
        # Concurrently: PostgreSQL may be unavailable, and a scrape's time is short.
        await asyncio.gather(*map(self._collect, self._collectors))
        gauges.end(begun)
        # In a thread, because of thousands of series: the log is followed in this process.
        exposition = await asyncio.to_thread(self._exposition)
        return Scrape(exposition, _health(gauges.figures()))

    async def _collect(self, collector: Collector) -> None:
        fault: Exception | None = None
        try:
            async with asyncio.timeout(COLLECTOR_SECONDS_MAX):
                await collector.collect(self._gauges)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            fault = error
        self._gauges.set(_COLLECTOR_UP, fault is None, collector.name)
        self._note(collector.name, fault)

    def _note(self, name: str, fault: Exception | None) -> None:
        """Log a fault that the last scrape did not have: the next one comes in seconds."""
        if fault is None:
            self._failing.pop(name, None)
            return
        error_type = type(fault).__name__
        if self._failing.get(name) == error_type:
            return
        self._failing[name] = error_type
        if is_infrastructure_error(fault):
            log.warning("collector failed", collector=name, error_type=error_type)
        else:  # a bug, or a row that nobody of us wrote
            log.error("collector failed", collector=name, exc_info=fault)

    def _exposition(self) -> bytes:
        return b"".join(generate_latest(source) for source in self._sources)


def fresh_seconds(took: float) -> float:
    """Return for how long a scrape that took so many seconds is returned again."""
    return min(max(FRESH_SECONDS_MIN, FRESH_FOR_EACH_SECOND * took), FRESH_SECONDS_MAX)


def _health(figures: Mapping[str, Mapping[str, float | None]]) -> Mapping[str, Any]:
    told = [
        (name, f"{name} {whose}".strip(), value)
        for name, by_labels in figures.items()
        for whose, value in by_labels.items()
    ]
    faults = [shown for name, shown, value in told if value == FAULTY.get(name, UNKNOWN)]
    # Apart: that the database is away says nothing of the log.
    unread = [
        shown for name, shown, value in told if value is None or (name, value) == (_COLLECTOR_UP, 0)
    ]
    status = "failing" if faults or unread else "ok"
    return {"status": status, "faults": faults, "unread": unread, "figures": figures}
