"""Tables that one test walks: every row is tried, and those that fail are reported together."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

CHARACTERS_MAX = 600
"""Of what is shown of one row's failure."""

Row = Callable[..., AbstractContextManager[None]]


@contextmanager
def every_row() -> Iterator[Row]:
    """Yield `row`; `with row(*names):` holds the assertions on one row and continues on failure.

    Raises AssertionError at the end with every row that failed, and where no row was tried.
    """
    tried = 0
    failed: list[str] = []

    @contextmanager
    def row(*names: object) -> Iterator[None]:
        nonlocal tried
        tried += 1
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - reported at the end
            text = f"{type(error).__name__}: {error}"
            failed.append(f"[{' | '.join(map(str, names))}] {text[:CHARACTERS_MAX]}")

    yield row
    assert tried, "the table has no rows"
    if failed:
        raise AssertionError(f"{len(failed)} of {tried} rows fail:\n" + "\n".join(failed))
