"""Interaction with a person at a terminal: confirmations, warnings and progress bars."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, and abort unless it is given; a program must pass --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This cannot be undone: pass --yes where nobody can be asked.")
    click.confirm(question, abort=True, err=True)


def warn(message: str) -> None:
    """Warn a person on stderr; a program finds the same facts in the JSON object."""
    if not click.get_current_context().params["as_json"]:
        click.echo(f"Warning: {message}", err=True)


@contextmanager
def progress(
    label: str, length: int, *, unit: str | None = None
) -> Generator[Callable[[int], object]]:
    """Show a bar on a terminal, and nothing to a program that reads stderr.

    With a `unit`, such as `events`, the bar also shows the count and the rate.
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
