import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.clock import system_clock, timestamp, to_milliseconds
from service.core.errors import ERRORS, Refusal, invalid
from service.core.ids import base62, derived_id, new_id, stream_id
from service.ledger.database import always

NOW = datetime(2026, 3, 1, 10, 15, 30, 123_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (NOW, "2026-03-01T10:15:30.123Z"),
        (NOW.replace(microsecond=0), "2026-03-01T10:15:30.000Z"),
        (NOW.astimezone(timezone(timedelta(hours=5))), "2026-03-01T10:15:30.123Z"),
    ],
)
def test_timestamps_have_three_digits_and_z(moment, text):
    """Contract section 2: UTC with milliseconds, also where they are zero."""
    assert timestamp(moment) == text


def test_the_clock_answers_whole_milliseconds_in_utc():
    """What is recorded is what is answered later."""
    now = system_clock()
    assert (now.tzinfo, to_milliseconds(now)) == (UTC, now)


def test_ids_are_prefixed_sortable_and_never_alike():
    """An id of a later moment sorts behind one of an earlier moment."""
    drawn = [new_id("clm", NOW + timedelta(milliseconds=number)) for number in range(500)]
    assert sorted(drawn) == drawn
    assert len({new_id("clm", NOW) for _ in range(500)}) == 500
    assert all(re.fullmatch("clm_[0-9a-hjkmnp-tv-z]{26}", one) for one in drawn)


def test_a_stream_id_is_pinned():
    """The derivation is part of the ledger's format: it may never change."""
    assert str(stream_id("a", "b")) == "3c9d5910-45bc-8876-b9d0-399bbfb05c6a"
    assert derived_id("ent", "x") == "ent_02hw6zbe2shyy9234q42vt8y2f"


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_are_different_streams(one, other):
    """Parts never run together: each is preceded by its length."""
    assert (stream_id(*one) == stream_id(*other)) == (one == other)


def test_base62_keeps_the_lowest_digits():
    """A fixed width, zeros in front."""
    assert (base62(0, 3), base62(61, 2), base62(62, 2)) == ("000", "0z", "10")


@pytest.mark.parametrize("code", ERRORS)
def test_every_code_has_an_envelope(code):
    """`details` belongs to validation_failed alone (contract 2.8)."""
    envelope = Refusal(code).envelope()
    expected = {"error", "code", "message"} | (
        {"details"} if code == "validation_failed" else set()
    )
    assert set(envelope) == expected


def test_a_single_field_is_refused_by_its_name():
    """The helper for one field makes the same details as the decoder."""
    refusal = invalid("page_token", "not a token of this list")
    assert refusal.envelope()["details"] == {
        "formErrors": [],
        "fieldErrors": {"page_token": ["not a token of this list"]},
    }


def test_a_statement_that_always_has_a_row_has_one():
    """Whatever it holds; that there is none is a fault of ours, and told as one."""
    assert always(0) == 0
    with pytest.raises(LookupError, match="where there is always one"):
        always(None)
