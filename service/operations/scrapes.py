"""What a scrape returns, made once for all who ask for it at about the same time."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector as Source

from service.core.shared import Shared
from service.operations.gauges import FAULTY, Collector, ScrapedGauges

FRESH_SECONDS_MIN: Final = 1.0
FRESH_SECONDS_MAX: Final = 15.0
"""What a scrape returned is returned again for nine times as long as it took to make: however many
series there are, and however often somebody asks, that is a tenth of a processor. Above the most,
a figure would be older than the interval of most scrapes."""
FRESH_FOR_EACH_SECOND: Final = 9.0


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
        self._collectors = collectors
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
        await asyncio.gather(
            *(collect(gauges) for collect in self._collectors), return_exceptions=True
        )
        gauges.end(begun)
        # In a thread, because of thousands of series: the log is followed in this process.
        exposition = await asyncio.to_thread(self._exposition)
        return Scrape(exposition, _health(gauges.figures()))

    def _exposition(self) -> bytes:
        return b"".join(generate_latest(source) for source in self._sources)


def fresh_seconds(took: float) -> float:
    """Return for how long a scrape that took so many seconds is returned again."""
    return min(max(FRESH_SECONDS_MIN, FRESH_FOR_EACH_SECOND * took), FRESH_SECONDS_MAX)


def _health(figures: Mapping[str, Mapping[str, float | None]]) -> Mapping[str, Any]:
    told = [
        (f"{name} {whose}".strip(), value, fault)
        for name, fault in FAULTY.items()
        for whose, value in figures[name].items()
    ]
    faults = [name for name, value, fault in told if value == fault]
    # Apart: that the database is away says nothing of the log.
    unread = [name for name, value, _ in told if value is None]
    status = "failing" if faults or unread else "ok"
    return {"status": status, "faults": faults, "unread": unread, "figures": figures}
