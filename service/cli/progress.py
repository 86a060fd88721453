"""Showing progress to a person who waits."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click


@contextmanager
def progress(
    label: str, length: int, *, unit: str | None = None
) -> Generator[Callable[[int], object]]:
    """Show a bar on a terminal, and nothing to a program that reads stderr.

    With a `unit`, such as `events`, also the count and the rate.
    """
    if not length or not sys.stderr.isatty():
        yield lambda _steps: None
        return
    started = time.monotonic()

    def rate(passed: int | None) -> str | None:
        return f"{passed / (time.monotonic() - started):,.0f} {unit}/s" if passed else None

    with click.progressbar(
        length=length,
        label=label,
        file=sys.stderr,
        item_show_func=rate if unit else None,
        show_pos=unit is not None,
    ) as bar:
        yield lambda steps: bar.update(steps, bar.pos + steps)
