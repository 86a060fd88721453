"""How many requests, and how many bytes of large bodies, a process admits at once."""

import asyncio
from contextlib import ExitStack
from functools import partial

import pytest

from service.core.errors import Refusal
from service.http.admission import (
    BODY_BYTES_IN_FLIGHT_MAX,
    BODY_BYTES_OF_ONE_MAX,
    IN_FLIGHT_MIN,
    LATE_MAX,
    LATE_OF_ONE_MAX,
    PER_SECOND_FIRST,
    SMALL_BYTES_MAX,
    Admission,
    BodyRoom,
)
from tests.patience import PATIENCE_SECONDS, eventually

DEADLINE_SECONDS = 2.0
WAIT_SECONDS = 0.5
LARGE = BODY_BYTES_IN_FLIGHT_MAX // 8


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.fixture
def clock():
    """Return a clock."""
    return Clock()


@pytest.fixture
def admission(clock):
    """Return the places of a process."""
    return Admission(DEADLINE_SECONDS, clock)


def enter(admission, count, method="POST"):
    """Let requests come; return the places of those that were admitted."""
    places = [admission.enter(method, limited=True) for _ in range(count)]
    return [place for place in places if place is not None]


def run(admission, clock, places, *, per_second, seconds):
    """Answer so many requests a second; each is followed by another, and a few more come."""
    for _ in range(int(seconds * 20)):
        clock.now += 0.05
        for _ in range(int(per_second / 20)):
            places.pop(0).leave()
            places += enter(admission, 2)


def test_an_idle_process_admits_a_burst(admission):
    """As many as it can answer in a quarter of the deadline, at the rate it is taken to have."""
    assert len(enter(admission, 5000)) == PER_SECOND_FIRST * WAIT_SECONDS


@pytest.mark.parametrize("per_second", [400, 2000])
def test_as_many_wait_as_are_answered_in_time(admission, clock, per_second):
    """The limit follows the rate of answers, up and down."""
    places = enter(admission, 5000)
    run(admission, clock, places, per_second=per_second, seconds=5)

    assert len(places) == pytest.approx(per_second * WAIT_SECONDS, rel=0.1)


def test_a_standstill_leaves_few_waiting(admission, clock):
    """Nothing is answered: of those that come, only the least number is admitted."""
    places = enter(admission, 5000)
    clock.now += 10
    while places:
        places.pop().leave()
    assert len(enter(admission, 5000)) <= IN_FLIGHT_MIN


def test_a_process_recovers_from_a_standstill(admission, clock):
    """Once answers flow again, the limit is back within two seconds."""
    places = enter(admission, 5000)
    clock.now += 10
    run(admission, clock, places, per_second=1000, seconds=2)

    assert len(places) > 800 * WAIT_SECONDS


def test_demand_is_not_taken_for_capacity(admission, clock):
    """A process that a trickle of requests comes to is not taken for a slow one."""
    for _ in range(100):
        (place,) = enter(admission, 1)
        clock.now += 1
        place.leave()
    assert len(enter(admission, 5000)) == PER_SECOND_FIRST * WAIT_SECONDS


def test_reads_do_not_wait_for_writes(admission, clock):
    """While writes stand still, reads are admitted, and a page of people's always is."""
    enter(admission, 5000)
    clock.now += 10
    assert not enter(admission, 1)
    assert enter(admission, 1, "GET")
    assert admission.enter("POST", limited=False)


async def test_late_bodies_leave_their_places(admission):
    """One partner has a quarter of those that may be late; who is refused keeps the place."""
    places = enter(admission, LATE_MAX + LATE_OF_ONE_MAX + 1)
    for number, place in enumerate(places):
        await place.hold(f"ptn_{max(0, number - LATE_OF_ONE_MAX) // LATE_OF_ONE_MAX}", 30)
    stepped_out = [place.step_out() for place in places]
    first = [True] * LATE_OF_ONE_MAX + [False] * LATE_OF_ONE_MAX

    assert stepped_out == [*first, *[True] * (LATE_MAX - LATE_OF_ONE_MAX), False]
    assert admission.late.total() == LATE_MAX
    assert admission.writes.in_flight == LATE_OF_ONE_MAX + 1
    page = admission.enter("POST", limited=False)
    assert page.step_out()
    for place in (*places, page):
        place.step_in()
    assert admission.late == {}
    assert admission.writes.in_flight == len(places)


async def test_large_bodies_wait_for_room(admission):
    """One partner has half of the room, all have all of it; what is answered makes room."""
    first = [admission.enter("POST", limited=True) for _ in range(8)]
    ours = [asyncio.create_task(place.hold("ptn_1", LARGE)) for place in first]
    other = admission.enter("POST", limited=True)
    theirs = asyncio.create_task(other.hold("ptn_2", LARGE))
    small = admission.enter("POST", limited=True)
    await small.hold("ptn_1", SMALL_BYTES_MAX)
    await asyncio.sleep(0)

    assert [task.done() for task in ours] == [True] * 4 + [False] * 4
    assert theirs.done()
    assert admission.room.held == {"ptn_1": BODY_BYTES_OF_ONE_MAX, "ptn_2": LARGE}
    first[0].leave()
    await asyncio.sleep(0)
    assert [task.done() for task in ours] == [True] * 5 + [False] * 3
    ours[5].cancel()
    await asyncio.wait([ours[5]])
    for place in (first[1], first[2], first[3], first[4], other, small, first[5]):
        place.leave()
    await asyncio.gather(*ours[6:])
    first[6].leave()
    first[7].leave()
    assert admission.room.held == {}
    assert admission.writes.in_flight == 0


async def test_a_body_that_has_come_holds_what_it_took(admission):
    """One in chunks might have been as large as any: a small one keeps nothing of that."""
    for owner in ("ptn_1", "ptn_1", "ptn_2", "ptn_2"):
        place = admission.enter("POST", limited=True)
        await place.hold(owner, BODY_BYTES_OF_ONE_MAX // 2)
        place.shrink(SMALL_BYTES_MAX)
    other = admission.enter("POST", limited=True)
    admission.room.wait_seconds_max = 0.0
    await other.hold("ptn_3", BODY_BYTES_OF_ONE_MAX)
    other.shrink(LARGE)
    other.shrink(LARGE + 1)

    assert admission.room.held == {"ptn_3": LARGE}
    other.leave()
    assert admission.room.held == {}


async def test_all_partners_together_have_a_limit():
    """Where none is free in time, a large body is refused before it is read."""
    admission = Admission(0.0)
    places = [admission.enter("POST", limited=False) for _ in range(9)]
    count = BODY_BYTES_IN_FLIGHT_MAX // LARGE
    for number, place in enumerate(places[:count]):
        await place.hold(f"ptn_{number}", LARGE)
    with pytest.raises(Refusal) as refused:
        await places[count].hold("ptn_9", LARGE)

    assert refused.value.code == "service_unavailable"
    for place in places:
        place.leave()
    assert admission.room.held == {}


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_whoever_gives_up_keeps_no_room_from_those_behind(is_cancelled):
    """A large body waits first in line and never comes; a smaller one that fits is read at once."""
    room = BodyRoom(60.0 if is_cancelled else 0.0, 60.0)
    half = LARGE // 2
    await room.take("ptn_1", BODY_BYTES_OF_ONE_MAX)
    await room.take("ptn_2", BODY_BYTES_OF_ONE_MAX - half)
    first = asyncio.create_task(room.take("ptn_3", LARGE))
    await asyncio.sleep(0)
    room.wait_seconds_max = 60.0
    behind = asyncio.create_task(room.take("ptn_4", half))
    await asyncio.sleep(0)
    if is_cancelled:
        first.cancel()
    await asyncio.wait([first])

    assert room.held["ptn_4"] == half
    await behind


async def test_bodies_that_are_still_arriving_give_way():
    """The oldest, as many as are in the way of one that does not wait for its own share."""
    room, ended = BodyRoom(60.0, 0.0), []
    with ExitStack() as arriving:
        for number in range(BODY_BYTES_IN_FLIGHT_MAX // LARGE):
            await room.take(f"ptn_{number // 4}", LARGE)
            arriving.enter_context(room.arrives(LARGE, partial(ended.append, number)))
        own = asyncio.create_task(room.take("ptn_0", LARGE))
        await asyncio.sleep(0.01)
        assert ended == []
        other = asyncio.create_task(room.take("ptn_2", LARGE + 1))
        await eventually(lambda: ended)
    assert ended == [0, 1]
    assert room.arriving == []
    for _ in ended:
        room.give_back("ptn_0", LARGE)
    await other
    assert not own.done()
    room.give_back("ptn_2", LARGE + 1)
    await own


async def test_who_goes_away_as_their_turn_comes_gives_its_room_back():
    """Or the room of a process would shrink with each such caller, until it is started again."""
    room = BodyRoom(60.0, 60.0)
    await room.take("ptn_1", BODY_BYTES_OF_ONE_MAX)
    gone = asyncio.create_task(room.take("ptn_1", LARGE))
    await asyncio.sleep(0)
    room.give_back("ptn_1", BODY_BYTES_OF_ONE_MAX)
    assert room.held == {"ptn_1": LARGE}
    gone.cancel()
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert room.held == {}


async def test_who_waits_for_its_own_share_keeps_no_room_free():
    """Also before one that holds more: what it waits for is not the process's room."""
    room = BodyRoom(60.0, 60.0)
    await room.take("ptn_1", 2 * LARGE)
    await room.take("ptn_2", 3 * LARGE)
    own = asyncio.create_task(room.take("ptn_1", 3 * LARGE))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await room.take("ptn_2", LARGE)
    assert not own.done()
    own.cancel()
    await asyncio.wait([own])


async def test_a_body_that_has_just_begun_to_arrive_gives_no_way():
    """Whoever waits takes the room of those that were there before it, not of later ones."""
    room, ended = BodyRoom(60.0, 0.0), []
    await room.take("ptn_1", BODY_BYTES_OF_ONE_MAX)
    await room.take("ptn_2", BODY_BYTES_OF_ONE_MAX)
    with room.arrives(LARGE, partial(ended.append, "young")):
        waiting = asyncio.create_task(room.take("ptn_3", LARGE))
        await asyncio.sleep(0)
        room.patience_seconds = 60.0  # which it has not had when its time comes, at once
        await asyncio.sleep(0.01)
        assert ended == []
    waiting.cancel()
    await asyncio.wait([waiting])
