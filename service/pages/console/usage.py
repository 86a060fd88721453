"""`/console/{partner_id}/usage`: calls of an hour to thirty days, as a chart and tables.

The limit is one for all keys of both modes (contract section 8), so the chart shows both. Spans of
hours and days are read from the counts by the hour and the day, of which there are few.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from litestar import get

from service.core.clock import Clock
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.console.chart import Slot, chart
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked_one_of
from service.pages.site_map import Html, Page, PathText
from service.request_log.reader import RequestsReader, Unit

Readers = Mapping[Mode, RequestsReader]


class UsageSpan(NamedTuple):
    """So many slots of a unit, the newest the one that is under way; names go below the chart."""

    unit: Unit
    step: timedelta
    slots: int
    name_format: str


SPANS: Final[Mapping[str, UsageSpan]] = {
    "hour": UsageSpan("minute", timedelta(minutes=1), 60, "%H:%M"),
    "day": UsageSpan("hour", timedelta(hours=1), 24, "%H:%M"),
    "week": UsageSpan("day", timedelta(days=1), 7, "%-d %b"),
    "month": UsageSpan("day", timedelta(days=1), 30, "%-d %b"),
}
"""Their texts are `usage.<name>` and `usage.<name>_title`."""


class EndpointUsage(NamedTuple):
    """Calls of one endpoint, by what became of them."""

    endpoint: str
    requests: int
    refused: int
    limited: int

    @property
    def refused_share(self) -> float:
        """The errors among the calls that the limit admitted, in per cent."""
        admitted = self.requests - self.limited
        return 100 * self.refused / admitted if admitted else 0.0


class Usage(NamedTuple):
    """What a span shows: all of its slots, oldest first, and the endpoints, busiest first."""

    slots: Sequence[Slot]
    endpoints: Sequence[EndpointUsage]

    def sums(self) -> dict[str, int]:
        """Return the figures of the span; `peak` is the busiest slot's."""
        names = ("total", "live", "test", "refused", "limited")
        sums = {name: sum(getattr(slot, name) for slot in self.slots) for name in names}
        return sums | {"peak": max(slot.total for slot in self.slots)}


def usage_router(calls: Readers, limit: int, clock: Clock) -> OneOffRouter:
    """Return the router of usage; `limit` is that of requests a minute."""

    @get("/usage", opt={"page": Page("approved", "usage.nav", ACTIVITY)})
    async def usage(request: AnyRequest, partner_id: PathText) -> Html:
        """Show calls over time and by endpoint, against the limit where it is by the minute."""
        name = asked_one_of(request, "span", tuple(SPANS)) or "day"
        span = SPANS[name]
        found = await read_usage(calls, partner_id, span, clock())
        of_minutes = limit if span.unit == "minute" else None
        return console_page(
            request,
            "usage.html",
            limit=limit,
            of_minutes=of_minutes,
            spans=list(SPANS),
            span=name,
            unit=span.unit,
            name_format=span.name_format,
            picture=chart(found.slots, of_minutes, span.name_format),
            busy=[slot for slot in reversed(found.slots) if slot.total],
            sums=found.sums(),
            endpoints=found.endpoints,
        )

    return OneOffRouter(CONSOLE, route_handlers=[usage])


async def read_usage(calls: Readers, partner_id: str, span: UsageSpan, now: datetime) -> Usage:
    """Return the usage of both modes over a span that ends now."""
    newest = _beginning(now, span.unit)
    moments = [newest - number * span.step for number in reversed(range(span.slots))]
    rows: list[tuple[Mode, Row]] = [
        (mode, row)
        for mode, reader in calls.items()
        for row in await reader.usage(partner_id, moments[0], span.unit)
    ]
    return Usage(_slots(moments, rows), _endpoints(row for _, row in rows))


def _beginning(now: datetime, unit: Unit) -> datetime:
    now = now.astimezone(UTC).replace(second=0, microsecond=0)
    if unit == "minute":
        return now
    return now.replace(minute=0) if unit == "hour" else now.replace(minute=0, hour=0)


def _slots(moments: Sequence[datetime], rows: Iterable[tuple[Mode, Row]]) -> list[Slot]:
    slots = {at: Slot(at) for at in moments}
    for mode, row in rows:
        slot = slots.get(row["slot"])
        if slot is None:  # of a minute that began since
            continue
        good = row["requests"] - row["refused"] - row["limited"]
        slots[slot.at] = slot._replace(
            refused=slot.refused + row["refused"],
            limited=slot.limited + row["limited"],
            **{mode: getattr(slot, mode) + good},
        )
    return list(slots.values())


def _endpoints(rows: Iterable[Row]) -> list[EndpointUsage]:
    found: dict[str, EndpointUsage] = {}
    for row in rows:
        name = f"{row['method']} {row['route']}"
        known = found.get(name, EndpointUsage(name, 0, 0, 0))
        found[name] = EndpointUsage(
            name,
            known.requests + row["requests"],
            known.refused + row["refused"],
            known.limited + row["limited"],
        )
    return sorted(found.values(), key=lambda one: (-one.requests, one.endpoint))
