"""`/console/{partner_id}/usage`: calls per minute against the limit, as a chart and a table.

The limit is one for all keys of both modes (contract section 8), so the chart shows both.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from litestar import get

from service.core.clock import Clock
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.site_map import Html, Page, PathText
from service.request_log.reader import RequestsReader

MINUTES: Final = 60
DAY: Final = timedelta(hours=24)
HEIGHT: Final = 100.0
STEP: Final = 100 / MINUTES
BAR: Final = 0.75 * STEP
LEAST: Final = 1.0
"""The height of the smallest bar, so that a single call can be seen."""
HEADROOM: Final = 1.1
NAME_HEIGHT: Final = 12.0
"""The share of the picture's height that a number beside it takes."""
TICK_MINUTES: Final = 15


class Minute(NamedTuple):
    """Calls of one minute. `limited` are those that the limit refused; the rest was admitted."""

    at: datetime
    live: int = 0
    test: int = 0
    limited: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """All calls of the minute."""
        return self.live + self.test + self.limited


class Bar(NamedTuple):
    """A part of the picture, in per cent of its width and height, from the top left."""

    kind: str
    x: float
    y: float
    height: float


class Picture(NamedTuple):
    """Bars, the limit's height, the minutes that are named below, and the busiest one's count.

    In per cent, so that a phone's picture is narrower and not smaller. `peak` is a height and a
    number, None where the limit's number would stand in its way.
    """

    bars: list[Bar]
    limit_y: float
    ticks: list[tuple[float, str]]
    peak: tuple[float, int] | None


def usage_router(calls: Mapping[Mode, RequestsReader], limit: int, clock: Clock) -> OneOffRouter:
    """Return the router of usage; `limit` is that of requests a minute."""

    @get("/usage", opt={"page": Page("member", "usage.nav", ACTIVITY)})
    async def usage(request: AnyRequest, partner_id: PathText) -> Html:
        """Show calls per minute against the limit."""
        now = clock().replace(second=0, microsecond=0)
        day = await _minutes(calls, partner_id, now - DAY + timedelta(minutes=1))
        first = now - timedelta(minutes=MINUTES - 1)
        moments = [first + timedelta(minutes=number) for number in range(MINUTES)]
        hour = [day.get(at, Minute(at)) for at in moments]
        return console_page(
            request,
            "usage.html",
            limit=limit,
            picture=picture(hour, limit),
            bar=round(BAR, 2),
            hour=[minute for minute in hour if minute.total],
            sums=[("hour", summed(hour)), ("day", summed(list(day.values())))],
        )

    return OneOffRouter(CONSOLE, route_handlers=[usage])


async def _minutes(
    calls: Mapping[Mode, RequestsReader], partner_id: str, since: datetime
) -> dict[datetime, Minute]:
    found: dict[datetime, Minute] = {}
    for mode, reader in calls.items():
        for row in await reader.usage(partner_id, since):
            known = found.get(row["minute"], Minute(row["minute"]))
            admitted = {mode: getattr(known, mode) + row["requests"] - row["limited"]}
            limited, refused = known.limited + row["limited"], known.refused + row["refused"]
            found[known.at] = known._replace(limited=limited, refused=refused, **admitted)
    return found


def summed(minutes: list[Minute]) -> dict[str, int]:
    """Return the figures of some minutes; `peak` is the busiest one's."""
    names = ("total", "live", "test", "refused", "limited")
    sums = {name: sum(getattr(minute, name) for minute in minutes) for name in names}
    return sums | {"peak": max((minute.total for minute in minutes), default=0)}


def picture(hour: list[Minute], limit: int) -> Picture:
    """Return where the bars stand: live below, test on it, what was refused by the limit on top."""
    peak = max(minute.total for minute in hour)
    scale = HEIGHT / (max(limit, peak) * HEADROOM)
    bars: list[Bar] = []
    for number, minute in enumerate(hour):
        base = HEIGHT
        parts = (("live", minute.live), ("test", minute.test), ("limited", minute.limited))
        for kind, count in parts:
            if count:
                tall = round(max(count * scale, LEAST), 2)
                base -= tall
                bars.append(Bar(kind, round(number * STEP, 2), round(base, 2), tall))
    ticks = [
        (round(number * STEP, 2), f"{minute.at:%H:%M}")
        for number, minute in enumerate(hour)
        if minute.at.minute % TICK_MINUTES == 0
    ]
    limit_y, peak_y = (round(HEIGHT - count * scale, 2) for count in (limit, peak))
    is_apart = peak and abs(limit_y - peak_y) >= NAME_HEIGHT
    return Picture(bars, limit_y, ticks, (peak_y, peak) if is_apart else None)
