"""The console's use of counts: the usage chart, the checklist, positions in lists."""

from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, NamedTuple

import pytest

from service.core.errors import Refusal
from service.facts.partners import Key, Partner
from service.pages.console.chart import (
    HEIGHT,
    LEAST,
    LEVELS_MAX,
    NAME_HEIGHT,
    TICKS_MAX,
    Slot,
    chart,
)
from service.pages.console.checklist import Facts, checklist, key_modes
from service.pages.console.listing import asked_moment, asked_place, place
from service.pages.console.tutorial import done as steps_done
from service.pages.console.tutorial import steps
from service.pages.console.usage import Usage

NOW = datetime(2026, 3, 31, 12, 0, 0, 123456, tzinfo=UTC)


def slots(*counts, of=60):
    """Return minutes, the first of which have these counts of (live, test, refused, limited)."""
    made = [Slot(NOW + timedelta(minutes=number)) for number in range(of)]
    for number, (live, test, refused, limited) in enumerate(counts):
        given = {"live": live, "test": test, "refused": refused, "limited": limited}
        made[number] = made[number]._replace(**given)
    return made


def test_bars_are_stacked():
    """Live below, then test, errors, and what was limited; zero has no bar."""
    drawn = chart(slots((60, 30, 5, 0), (0, 0, 0, 0), (120, 0, 0, 40)), 120, "%H:%M")
    step = HEIGHT / 60
    assert [(bar.kind, bar.x) for bar in drawn.bars] == [
        ("live", 0),
        ("test", 0),
        ("refused", 0),
        ("live", round(2 * step, 2)),
        ("limited", round(2 * step, 2)),
    ]
    live, test, refused, *_ = drawn.bars
    assert live.y + live.height == pytest.approx(HEIGHT, abs=0.02)
    assert test.y + test.height == pytest.approx(live.y, abs=0.02)
    assert refused.y + refused.height == pytest.approx(test.y, abs=0.02)
    assert all(bar.y >= 0 for bar in drawn.bars)


def test_a_full_minute_reaches_the_limit():
    """A bar at the limit ends at the line; where slots are longer, there is no line."""
    drawn = chart(slots((100, 20, 0, 0)), 120, "%H:%M")
    assert drawn.bars[-1].y == pytest.approx(drawn.limit_y, abs=0.02)
    assert chart(slots((100, 20, 0, 0)), None, "%H:%M").limit_y is None


def test_a_single_call_is_visible():
    """However high the limit, a bar of one call has a height."""
    drawn = chart(slots((1, 0, 0, 1)), 100_000, "%H:%M")
    assert [bar.height for bar in drawn.bars] == [LEAST, LEAST]


@pytest.mark.parametrize("peak", [0, 1, 3, 9, 10, 11, 99, 120, 4_000, 123_456, 10**9])
@pytest.mark.parametrize("limit", [None, 1, 120, 5_000])
def test_levels_are_round_and_do_not_overlap(peak, limit):
    """A few of them, inside the picture, apart from each other and from the limit."""
    drawn = chart(slots((peak, 0, 0, 0)), limit, "%H:%M")
    heights = [y for y, _ in drawn.levels] + ([] if limit is None else [drawn.limit_y])
    assert len(drawn.levels) <= LEVELS_MAX
    assert all(0 <= y <= HEIGHT for y in heights)
    apart = [abs(one - other) for one, other in combinations(heights, 2)]
    assert all(distance >= NAME_HEIGHT for distance in apart)


def test_a_level_is_a_number_that_people_read():
    """A one, two or five of a power of ten, and its multiples."""
    drawn = chart(slots((700, 0, 0, 0)), None, "%H:%M")
    assert [number for _, number in drawn.levels] == [200, 400, 600]


def test_ticks_name_the_newest_slot():
    """At even distances, as many as a phone has room for."""
    for of in (60, 24, 7, 30):
        names = chart(slots(of=of), None, "%H:%M").ticks
        assert len(names) == TICKS_MAX
        assert names[-1][1] == f"{slots(of=of)[-1].at:%H:%M}"
        assert names[-1][0] < HEIGHT


def test_sums_cover_both_modes():
    """Errors and limited calls are counted apart."""
    found = Usage([Slot(NOW, 2, 3, 1, 4), Slot(NOW, 1)], []).sums()
    assert found == {"total": 11, "live": 3, "test": 3, "refused": 1, "limited": 4, "peak": 10}


class Seen(NamedTuple):
    """A row of the query `seen`."""

    method: str
    route: str
    status: int
    code: str
    first_at: datetime
    last_at: datetime

    def __getitem__(self, name: Any) -> Any:
        return getattr(self, name)


def seen(route, status, code="", *, after=0, until=None, method="POST"):
    """Return a row, with seconds after a start."""
    last = NOW + timedelta(seconds=after if until is None else until)
    return Seen(method, f"/v1/{route}", status, code, NOW + timedelta(seconds=after), last)


def done(*rows, modes=(), settings=False, documents=False):
    """Return the completed items."""
    facts = Facts(rows, frozenset(modes), settings, documents)
    return {item.name for item in checklist(facts) if item.done}


def test_nothing_is_done_before_the_first_call():
    """Without keys, traffic and settings."""
    assert done() == set()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([seen("onboardings", 201)], {"onboarding"}),
        ([seen("onboardings", 200)], set()),
        ([seen("connect-requests", 201)], {"link"}),
        ([seen("claims", 201)], {"claim"}),
        ([seen("claims", 200)], {"replay"}),
        ([seen("claims", 200, method="GET")], {"listing"}),
        ([seen("claims", 403, "partner_disconnected")], {"disconnected"}),
        ([seen("claims", 400, "invalid_json")], set()),
        ([seen("claims", 400, "invalid_json"), seen("claims", 201, after=1)], {"claim", "error"}),
        ([seen("claims", 201), seen("claims", 400, "invalid_json", after=1)], {"claim"}),
        ([seen("onboardings", 400, "x"), seen("claims", 201, after=1)], {"claim"}),
        ([seen("claims", 429, "rate_limited"), seen("claims", 201, after=1)], {"claim", "limit"}),
        ([seen("claims", 429, "rate_limited")], set()),
        ([seen("claims", 503, "x"), seen("claims", 201, until=1)], {"claim", "retry"}),
        ([seen("documents/upload-url", 201), seen("claims", 201, after=1)], {"claim"}),
    ],
)
def test_traffic_completes_items(rows, expected):
    """An error counts once its endpoint succeeded later; a minted URL is no document."""
    assert done(*rows) == expected


def test_keys_settings_and_documents_complete_items():
    """A key per mode, changed settings, and a claim with a document."""
    assert done(modes=("test", "live"), settings=True) == {"test_key", "live_key", "settings"}
    assert done(documents=True) == {"documents"}


def test_the_tutorial_is_ticked_by_the_traffic():
    """Listing counts once there was a claim to list; an upload once a claim refers to it."""
    every = {step.name for step in steps("https://api.example.com/v1", "ptn_1", 0)}

    def ticked(*rows, documents=False):
        return set(steps_done(Facts(rows, frozenset(), False, documents)))

    claims = [seen("claims", 201, after=1), seen("claims", 200)]
    assert ticked() == set()
    assert ticked(seen("claims", 200, method="GET")) == {"look"}
    assert ticked(*claims, seen("claims", 200, method="GET")) == {"look", "create", "repeat"}
    others = [
        seen("claims", 200, after=2, method="GET"),
        seen("claims", 403, "partner_disconnected"),
        seen("onboardings", 201),
        seen("documents/upload-url", 201),
    ]
    assert ticked(*claims, *others) == every - {"upload", "attach"}
    assert ticked(*claims, *others, documents=True) == every


def test_an_ending_key_does_not_count():
    """Neither a revoked key nor a rolled one, which has a successor."""
    keys = [Key("test", revoked=True), Key("test", ends_at=NOW), Key("live")]
    partner = Partner(keys={str(number): key for number, key in enumerate(keys)})
    assert key_modes(partner) == {"live"}


class Asking:
    """A request with one parameter."""

    def __init__(self, value: str) -> None:
        self.query_params = {"before": value}


def test_a_position_is_read_back_unchanged():
    """To the microsecond, with any id."""
    given = (NOW, "req_1.2")
    request: Any = Asking(place(given) or "")
    assert asked_place(request) == given
    assert place(None) is None


@pytest.mark.parametrize("value", ["x", "1", ".req", "-1.req", "²2.req", f"{'9' * 17}.req", "1.\0"])
def test_an_invalid_position_is_refused(value):
    """The refusal names the parameter."""
    request: Any = Asking(value)
    with pytest.raises(Refusal) as refused:
        asked_place(request)
    assert refused.value.code == "validation_failed"
    assert "before" in (refused.value.field_errors or {})


@pytest.mark.parametrize(
    "value", ["2026-03-31T12:00", "2026-03-31T12:00:00", "2026-03-31T12:00:00.000Z"]
)
def test_a_moment_is_in_utc(value):
    """In the formats of form fields and of logs."""
    request: Any = Asking(value)
    assert asked_moment(request, "before") == NOW.replace(microsecond=0)


@pytest.mark.parametrize("value", ["x", "12:00", "2026-02-30T12:00", "0001-01-01T00:00+14:00"])
def test_an_invalid_moment_is_refused(value):
    """The refusal names the parameter."""
    request: Any = Asking(value)
    with pytest.raises(Refusal) as refused:
        asked_moment(request, "before")
    assert "before" in (refused.value.field_errors or {})
