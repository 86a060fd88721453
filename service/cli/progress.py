"""Showing a person who waits how far a command is."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click


@contextmanager
def progress(label: str, length: int) -> Generator[Callable[[int], object]]:
    """Show a bar to a person who waits; whoever reads stderr by a program sees nothing."""
    if not length or not sys.stderr.isatty():
        yield lambda _steps: None
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:
        yield bar.update
