"""Errors that a person can correct, reported in one line."""

from collections.abc import Generator
from contextlib import contextmanager

import click


@contextmanager
def one_line(*expected: type[Exception], before: str = "", after: str = "") -> Generator[None]:
    """Turn the expected errors into a ClickException, with text before and after their message."""
    try:
        yield
    except expected as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        raise click.ClickException(f"{before}{why}{after}") from error
