"""How many changes of a stream its people can make in a day."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from service.core.errors import Refusal
from service.facts.changes import CHANGES_MAX, Changes
from service.facts.partners import MemberAdded, MemberRemoved
from service.ledger.events import Meta, Recorded

NOW = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
ADDED, REMOVED = MemberAdded("ptn_1", "mem_1"), MemberRemoved("ptn_1", "mem_1")
COUNTED = (MemberAdded,)


def recorded(event, actor="member:per_1", at=NOW):
    """Return an event as a stream has it."""
    return Recorded(1, uuid4(), 1, event, Meta(at, actor, "req_1", "accounts"))


FULL = Changes().after([recorded(ADDED)] * CHANGES_MAX, COUNTED)


def test_the_bound_is_of_all_its_people_in_one_day():
    """Another day begins anew, also where the clock of one process is behind."""
    FULL._replace(made=CHANGES_MAX - 1).allow([ADDED], COUNTED, "member:per_2", NOW)
    for actor in ("member:per_2", "customer:ent_1"):
        with pytest.raises(Refusal, match="rate_limited") as refused:
            FULL.allow([ADDED, REMOVED], COUNTED, actor, NOW)
        assert refused.value.retry_after_seconds == 61
    with pytest.raises(Refusal, match="rate_limited"):
        FULL.allow([ADDED], COUNTED, "member:per_2", NOW - timedelta(days=1))
    tomorrow = NOW + timedelta(minutes=1)
    FULL.allow([ADDED], COUNTED, "member:per_1", tomorrow)
    assert FULL.after([recorded(ADDED, at=tomorrow)], COUNTED) == (tomorrow.date(), 1)
    behind = FULL.after([recorded(ADDED, at=NOW - timedelta(days=1))], COUNTED)
    assert behind == (NOW.date(), CHANGES_MAX + 1)


def test_neither_the_team_nor_what_takes_away_is_counted():
    """And neither is refused."""
    others = [recorded(REMOVED), recorded(ADDED, "staff:stf_1"), recorded(ADDED, "system:dev")]
    assert FULL.after(others, COUNTED) == FULL
    FULL.allow([REMOVED], COUNTED, "member:per_1", NOW)
    FULL.allow([], COUNTED, "member:per_1", NOW)
    FULL.allow([ADDED], COUNTED, "staff:stf_1", NOW)
