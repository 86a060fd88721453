"""Counts of calls as a bar chart: where bars, levels and names stand. Pure geometry.

Everything is in per cent of the picture, so that a phone's is narrower and not smaller.
"""

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import Final, NamedTuple

HEIGHT: Final = 100.0
FILLED: Final = 0.75
"""The share of a slot that its bar takes."""
LEAST: Final = 1.0
"""The height of the smallest bar, so that a single call can be seen."""
HEADROOM: Final = 1.1
NAME_HEIGHT: Final = 12.0
"""The share of the picture's height that a number beside it takes."""
LEVELS_MAX: Final = 4
TICKS_MAX: Final = 4
"""Names that a phone has room for."""

_ROUND: Final = (1, 2, 5, 10)


class Slot(NamedTuple):
    """Calls of a minute, an hour or a day. What was refused is in neither of the first two.

    `limited` are those that the rate limit refused, `refused` all other errors.
    """

    at: datetime
    live: int = 0
    test: int = 0
    refused: int = 0
    limited: int = 0

    @property
    def total(self) -> int:
        """All calls."""
        return self.live + self.test + self.refused + self.limited


KINDS: Final = ("live", "test", "refused", "limited")
"""What a bar is made of, from below."""


class Bar(NamedTuple):
    """A part of the picture, from the top left."""

    kind: str
    x: float
    y: float
    height: float


class Chart(NamedTuple):
    """Bars of one width, levels with their numbers, the limit's height, and names below."""

    bars: list[Bar]
    width: float
    levels: list[tuple[float, int]]
    limit_y: float | None
    ticks: list[tuple[float, str]]


def chart(slots: Sequence[Slot], limit: int | None, name_format: str) -> Chart:
    """Return the chart of slots that follow each other; `limit`: of calls in each."""
    peak = max(slot.total for slot in slots)
    scale = HEIGHT / (max(limit or 0, peak, 1) * HEADROOM)
    step = HEIGHT / len(slots)
    limit_y = None if limit is None else _y(limit, scale)
    levels = [(_y(number, scale), number) for number in _levels(HEIGHT / scale)]
    return Chart(
        [bar for number, slot in enumerate(slots) for bar in _bars(slot, number * step, scale)],
        round(step * FILLED, 2),
        [one for one in levels if limit_y is None or abs(one[0] - limit_y) >= NAME_HEIGHT],
        limit_y,
        _ticks(slots, step, name_format),
    )


def _bars(slot: Slot, x: float, scale: float) -> list[Bar]:
    bars: list[Bar] = []
    base = HEIGHT
    for kind in KINDS:
        count = getattr(slot, kind)
        if count:
            tall = round(max(count * scale, LEAST), 2)
            base -= tall
            bars.append(Bar(kind, round(x, 2), round(base, 2), tall))
    return bars


def _levels(most: float) -> list[int]:
    """Return up to LEVELS_MAX round numbers above zero that fit."""
    wanted = most / LEVELS_MAX
    power = 10 ** max(len(str(ceil(wanted))) - 1, 0)
    step = next(one * power for one in _ROUND if one * power >= wanted)
    return list(range(step, int(most) + 1, step))


def _ticks(slots: Sequence[Slot], step: float, name_format: str) -> list[tuple[float, str]]:
    """Return names in the middle of their bars, at even distances that end at the newest."""
    apart = ceil(len(slots) / TICKS_MAX)
    numbers = range(len(slots) - 1, -1, -apart)
    return [
        (round((number + FILLED / 2) * step, 2), slots[number].at.strftime(name_format))
        for number in reversed(numbers)
    ]


def _y(count: int, scale: float) -> float:
    return round(HEIGHT - count * scale, 2)
