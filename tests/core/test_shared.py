"""One run for all who ask at about the same time."""

import asyncio

import pytest

from service.core.shared import Shared
from service.core.visitors import visited_by, visitors


class Made:
    """Counts its runs; each waits for `go` and returns its number, or raises."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = asyncio.Event()
        self.fault: Exception | None = None

    async def __call__(self) -> int:
        """Run once."""
        self.runs += 1
        number = self.runs
        await self.go.wait()
        if self.fault is not None:
            raise self.fault
        return number


async def test_who_asks_during_a_run_gets_its_result():
    """Fifty at once are one run; the next one asks anew."""
    made = Made()
    shared = Shared(made)
    asking = [asyncio.create_task(shared.get()) for _ in range(50)]
    await asyncio.sleep(0)
    made.go.set()
    assert await asyncio.gather(*asking) == [1] * 50
    assert await shared.get() == 2


async def test_a_result_is_returned_again_while_it_is_fresh():
    """For as long as its run's duration allows."""
    now, made = [0.0], Made()
    made.go.set()
    shared = Shared(made, lambda _took: 10.0, lambda: now[0])
    seen = []
    for moment in (0.0, 9.9, 10.0, 19.9, 20.0):
        now[0] = moment
        seen.append(await shared.get())
    assert seen == [1, 1, 2, 2, 3]


async def test_a_failure_is_everybodys_and_is_not_kept():
    """Whoever waited gets it; whoever asks later begins another run."""
    made = Made()
    made.go.set()
    made.fault = ValueError("once")
    shared = Shared(made, lambda _took: 10.0)
    for outcome in await asyncio.gather(shared.get(), shared.get(), return_exceptions=True):
        assert isinstance(outcome, ValueError)
    made.fault = None
    assert await shared.get() == 2


async def test_one_who_gives_up_stops_nobody_else():
    """The run goes on for the others."""
    made = Made()
    shared = Shared(made)
    impatient, patient = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
    await asyncio.sleep(0)
    impatient.cancel()
    made.go.set()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    assert await patient == 1


async def test_a_run_is_no_visitors():
    """Whoever asks first may have to wait for their own pages; the others do not wait with them."""

    async def whose():
        return visitors()

    with visited_by("person 1"):
        assert (visitors(), await Shared(whose).get()) == (("person 1",), ())
