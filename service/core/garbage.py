"""Python's collector of cycles: in a process that runs for days, and in loops that make none."""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

THRESHOLD: Final = 10_000
"""New objects before it looks for cycles; Python's own 700 is a request or two."""


def leave_out_what_is_there() -> None:
    """Make the collector run less often, and leave out every object that exists now.

    A tenth of a process's time went into walking the objects of its modules again and again.
    """
    gc.freeze()
    gc.set_threshold(THRESHOLD)


@contextmanager
def collector_paused() -> Generator[None]:
    """Pause it for what makes many objects and no cycles, such as a loop over pages of rows.

    It would go through them again and again: measured, a third of the time of a rebuild, and at
    Python's own threshold five sixths of that of a MiB of JSON.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
