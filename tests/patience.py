"""One generous time limit for what tests do not measure, and waiting for a state.

The limit is generous, because other work may share the machine; what is waited for in vain costs
it once. `TESTS_PATIENCE_SECONDS` sets another one.
"""

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_SECONDS = float(os.environ.get("TESTS_PATIENCE_SECONDS", "120"))
_LOOK_SECONDS = 0.01


def until(
    condition: Callable[[], Any], why: Callable[[], object] | None = None, *, look: float = 0.0
) -> Any:
    """Wait for a condition, and return what it returned.

    `why` explains a failure, for instance by a log; `look` is the pause in seconds between two
    looks, where looking is costly.
    """
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < ends_at, _in_vain(condition, why)
        time.sleep(look or _LOOK_SECONDS)
    return found


async def eventually(
    condition: Callable[[], Any], why: Callable[[], object] | None = None, *, look: float = 0.0
) -> Any:
    """Wait for a condition, which may be a coroutine function, while the loop runs on."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < ends_at, _in_vain(condition, why)
        await asyncio.sleep(look or _LOOK_SECONDS)


@contextmanager
def waiting() -> Iterator[Callable[[], float]]:
    """Count, in seconds, how long the running loop has asked to wait: yields what reads the count.

    A deadline that is kept shows in it exactly, on a machine of any speed: waiting for a timer
    counts as long as the loop asked for, and computing, or waiting for the processor, not at all.
    """
    selector: Any = asyncio.get_running_loop()._selector  # noqa: SLF001 - nothing else tells
    select, total = selector.select, 0.0

    def counted(timeout: float | None = None) -> Any:
        nonlocal total
        began = time.monotonic()
        found = select(timeout)
        took = time.monotonic() - began
        total += took if timeout is None else min(took, max(timeout, 0.0))
        return found

    selector.select = counted
    try:
        yield lambda: total
    finally:
        selector.select = select


def _in_vain(condition: Callable[[], Any], why: Callable[[], object] | None) -> str:
    code = getattr(condition, "__code__", None)
    place = f" (line {code.co_firstlineno} of {code.co_filename})" if code else ""
    return f"waited {PATIENCE_SECONDS:.0f} s in vain{place}: {why() if why else ''}"
