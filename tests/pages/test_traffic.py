"""The console's use of counts: the usage chart, the checklist, positions in lists."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from service.core.errors import Refusal
from service.pages.console.checklist import Facts, checklist, key_modes
from service.pages.console.listing import asked_moment, asked_place, place
from service.pages.console.usage import (
    HEIGHT,
    LEAST,
    MINUTES,
    NAME_HEIGHT,
    STEP,
    Minute,
    picture,
    summed,
)

NOW = datetime(2026, 3, 31, 12, 0, 0, 123456, tzinfo=UTC)


def hour(*counts):
    """Return an hour that begins with these counts of (live, test, limited) per minute."""
    first = NOW.replace(minute=0, second=0, microsecond=0)
    minutes = [Minute(first + timedelta(minutes=number)) for number in range(MINUTES)]
    for number, (live, test, limited) in enumerate(counts):
        minutes[number] = minutes[number]._replace(live=live, test=test, limited=limited)
    return minutes


def test_bars_are_stacked():
    """Live below, then test, then limited; zero has no bar."""
    drawn = picture(hour((60, 30, 0), (0, 0, 0), (120, 0, 40)), 120)
    assert [(bar.kind, bar.x) for bar in drawn.bars] == [
        ("live", 0),
        ("test", 0),
        ("live", round(2 * STEP, 2)),
        ("limited", round(2 * STEP, 2)),
    ]
    live, test, *_ = drawn.bars
    assert live.y + live.height == pytest.approx(HEIGHT, abs=0.02)
    assert test.y + test.height == pytest.approx(live.y, abs=0.02)
    assert all(bar.y >= 0 for bar in drawn.bars)


def test_a_full_minute_reaches_the_limit():
    """A bar at the limit ends at the line."""
    drawn = picture(hour((100, 20, 0)), 120)
    assert drawn.bars[-1].y == pytest.approx(drawn.limit_y, abs=0.02)


def test_a_single_call_is_visible():
    """However high the limit, a bar of one call has a height."""
    drawn = picture(hour((1, 0, 1)), 100_000)
    assert [bar.height for bar in drawn.bars] == [LEAST, LEAST]


@pytest.mark.parametrize("limited", [0, 1, 4, 40, 4000])
def test_axis_labels_do_not_overlap(limited):
    """The busiest minute is labelled if the limit's label leaves room."""
    drawn = picture(hour((100, 20, limited)), 120)
    assert drawn.peak is None or abs(drawn.peak[0] - drawn.limit_y) >= NAME_HEIGHT
    assert (drawn.peak is not None) == (limited >= 40)
    assert drawn.peak is None or drawn.peak[1] == 120 + limited


def test_a_quiet_hour_has_no_bars():
    """The line is still drawn."""
    drawn = picture(hour(), 120)
    assert (drawn.bars, drawn.peak) == ([], None)
    assert 0 < drawn.limit_y < HEIGHT
    assert [name for _, name in drawn.ticks] == ["12:00", "12:15", "12:30", "12:45"]


def test_sums_cover_both_modes():
    """Refused calls are included."""
    found = summed([Minute(NOW, 2, 3, 4, 1), Minute(NOW, 1)])
    assert found == {"total": 10, "live": 3, "test": 3, "refused": 1, "limited": 4, "peak": 9}
    assert summed([])["peak"] == 0


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


def test_an_ending_key_does_not_count():
    """Neither a revoked key nor a rolled one, which has a successor."""
    keys: Any = [
        {"mode": "test", "revoked_at": NOW},
        {"mode": "live", "revoked_at": NOW},
        {"mode": "live", "revoked_at": None},
    ]
    assert key_modes(keys) == {"live"}


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
