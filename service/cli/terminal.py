"""Interaction with a person at a terminal: confirmations, warnings and progress bars."""

import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import click

_SHOWN_SECONDS: Final = 0.1
"""To show each step of a file's lines would take longer than to verify them."""


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, and abort unless it is given; a program must pass --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "This cannot be undone: without a terminal to confirm at, pass --yes."
        )
    with _interrupted_at_once():
        click.confirm(question, abort=True, err=True)


@contextmanager
def _interrupted_at_once() -> Generator[None]:
    """Have Ctrl-C end what the event loop waits for: its own handler has effect only after that."""
    of_the_loop = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, of_the_loop)


def warn(message: str) -> None:
    """Warn a person on stderr; a program finds the same facts in the JSON object."""
    if not click.get_current_context().params["as_json"]:
        click.echo(f"Warning: {message}", err=True)


@contextmanager
def progress(
    label: str, length: int, *, unit: str | None = None, each: int = 1
) -> Generator[Callable[[int], object]]:
    """Show a bar with the time left on a terminal, and nothing to a program that reads stderr.

    With a `unit`, such as `events`, the bar also shows the count and the rate; with `each`, the
    rate alone, of units that have so many steps.
    """
    if not length or not sys.stderr.isatty():
        yield lambda _steps: None
        return
    started = shown_at = time.monotonic()
    held = 0

    def rate(passed: int | None) -> str | None:
        return f"{passed / each / (time.monotonic() - started):,.0f} {unit}/s" if passed else None

    with click.progressbar(
        length=length,
        label=label,
        file=sys.stderr,
        item_show_func=rate if unit else None,
        show_pos=unit is not None and each == 1,
    ) as bar:

        def advance(steps: int) -> None:
            nonlocal held, shown_at
            held += steps
            now = time.monotonic()
            if now - shown_at >= _SHOWN_SECONDS:
                bar.update(held, bar.pos + held)
                held, shown_at = 0, now

        yield advance
        bar.update(held, bar.pos + held)
