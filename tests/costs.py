"""What something costs in CPU time, in terms of other work: no machine is too slow for a test."""

import time
from collections.abc import Callable
from typing import Any

RUNS = 7
_STEPS = 200_000


def cpu_seconds(act: Callable[..., Any], *given: Any) -> float:
    """Return the least CPU time of several runs, of this thread alone."""
    took: list[float] = []
    for _ in range(RUNS):
        began = time.thread_time()
        act(*given)
        took.append(time.thread_time() - began)
    return min(took)


def share(most: float, act: Callable[..., Any], *given: Any) -> float:
    """Return what something costs as a share of `most`, which `five_milliseconds` has returned.

    A machine's speed changes between two looks, so what exceeds it is compared several times more,
    with what five milliseconds are at that moment.
    """
    least = cpu_seconds(act, *given) / most
    for _ in range(RUNS):
        if least <= 1:
            break
        least = min(least, cpu_seconds(act, *given) / five_milliseconds())
    return least


def five_milliseconds() -> float:
    """Return the CPU time here of what takes about 5 ms where the service was made."""
    return cpu_seconds(_counted)


def _counted() -> int:
    steps = 0
    for _ in range(_STEPS):
        steps += 1
    return steps
