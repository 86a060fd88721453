"""What the console makes of counts: the picture of usage, the checklist, places in lists."""

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
    """Return an hour whose first minutes have these counts of (live, test, limited)."""
    first = NOW.replace(minute=0, second=0, microsecond=0)
    minutes = [Minute(first + timedelta(minutes=number)) for number in range(MINUTES)]
    for number, (live, test, limited) in enumerate(counts):
        minutes[number] = minutes[number]._replace(live=live, test=test, limited=limited)
    return minutes


def test_bars_stand_on_each_other():
    """Live below, test on it, what the limit refused on top; none for nothing."""
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
    """A bar of as many calls as are allowed ends at the line."""
    drawn = picture(hour((100, 20, 0)), 120)
    assert drawn.bars[-1].y == pytest.approx(drawn.limit_y, abs=0.02)


def test_a_single_call_is_seen():
    """However high the limit, a bar that stands for a call has a height."""
    drawn = picture(hour((1, 0, 1)), 100_000)
    assert [bar.height for bar in drawn.bars] == [LEAST, LEAST]


@pytest.mark.parametrize("limited", [0, 1, 4, 40, 4000])
def test_numbers_beside_the_picture_stand_apart(limited):
    """The busiest minute has its number where the limit's leaves room for it."""
    drawn = picture(hour((100, 20, limited)), 120)
    assert drawn.peak is None or abs(drawn.peak[0] - drawn.limit_y) >= NAME_HEIGHT
    assert (drawn.peak is not None) == (limited >= 40)
    assert drawn.peak is None or drawn.peak[1] == 120 + limited


def test_a_quiet_hour_has_no_bars():
    """The line is there all the same."""
    drawn = picture(hour(), 120)
    assert (drawn.bars, drawn.peak) == ([], None)
    assert 0 < drawn.limit_y < HEIGHT
    assert [name for _, name in drawn.ticks] == ["12:00", "12:15", "12:30", "12:45"]


def test_sums():
    """Calls of both modes, refused ones too."""
    found = summed([Minute(NOW, 2, 3, 4, 1), Minute(NOW, 1)])
    assert found == {"total": 10, "live": 3, "test": 3, "refused": 1, "limited": 4, "peak": 9}
    assert summed([])["peak"] == 0


class Seen(NamedTuple):
    """A row of seen.sql."""

    method: str
    route: str
    status: int
    code: str
    first_at: datetime
    last_at: datetime

    def __getitem__(self, name: Any) -> Any:
        return getattr(self, name)


def seen(route, status, code="", *, after=0, until=None, method="POST"):
    """Return a row; seconds after a beginning."""
    last = NOW + timedelta(seconds=after if until is None else until)
    return Seen(method, f"/v1/{route}", status, code, NOW + timedelta(seconds=after), last)


def done(*rows, modes=(), settings=False, documents=False):
    """Return the items that are done."""
    facts = Facts(rows, frozenset(modes), settings, documents)
    return {item.name for item in checklist(facts) if item.done}


def test_nothing_is_done_before_the_first_call():
    """Neither keys nor traffic nor settings."""
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
def test_traffic_tells(rows, expected):
    """An error counts once the same endpoint succeeded afterwards; a minted URL is no document."""
    assert done(*rows) == expected


def test_keys_settings_and_documents_tell():
    """A key of each mode, another choice of settings than the first, a claim with a document."""
    assert done(modes=("test", "live"), settings=True) == {"test_key", "live_key", "settings"}
    assert done(documents=True) == {"documents"}


def test_a_key_with_an_end_is_none():
    """Neither one that was revoked nor one that was rolled, which has its successor."""
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


def test_a_place_is_read_as_it_was_written():
    """To the microsecond, and with whatever the id holds."""
    given = (NOW, "req_1.2")
    request: Any = Asking(place(given) or "")
    assert asked_place(request) == given
    assert place(None) is None


@pytest.mark.parametrize("value", ["x", "1", ".req", "-1.req", "²2.req", f"{'9' * 17}.req", "1.\0"])
def test_no_place(value):
    """What was not written by us is refused, with the parameter's name."""
    request: Any = Asking(value)
    with pytest.raises(Refusal) as refused:
        asked_place(request)
    assert refused.value.code == "validation_failed"
    assert "before" in (refused.value.field_errors or {})


@pytest.mark.parametrize(
    "value", ["2026-03-31T12:00", "2026-03-31T12:00:00", "2026-03-31T12:00:00.000Z"]
)
def test_a_moment_is_in_utc(value):
    """As a field of a form has it, and as a log has it."""
    request: Any = Asking(value)
    assert asked_moment(request, "before") == NOW.replace(microsecond=0)


@pytest.mark.parametrize("value", ["x", "12:00", "2026-02-30T12:00", "0001-01-01T00:00+14:00"])
def test_no_moment(value):
    """What is no moment is refused, with the parameter's name."""
    request: Any = Asking(value)
    with pytest.raises(Refusal) as refused:
        asked_moment(request, "before")
    assert "before" in (refused.value.field_errors or {})
