"""Whose page is being made, if any is: of what pages share, each visitor has a part.

What a page begins for others as well is done for none of them: its task has `for_everybody()` as
its context, or it would wait for one visitor's part.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass


@dataclass(slots=True)
class _Visit:
    visitors: tuple[str, ...]


_visit: ContextVar[_Visit | None] = ContextVar("visit", default=None)


@contextmanager
def visited_by(visitor: str) -> Generator[None]:
    """Make what the block does a part of a visitor's page: a network's, where no more is known."""
    token = _visit.set(_Visit((visitor,)))
    try:
        yield
    finally:
        _visit.reset(token)


def is_visited_by(*visitors: str) -> None:
    """Count what the page does from now on as a person's, and as a partner's, in this order."""
    visit = _visit.get()
    if visit is not None:
        visit.visitors = visitors


def visitors() -> tuple[str, ...]:
    """Return whose page is being made; nobody's is a partner's call, or no request at all."""
    visit = _visit.get()
    return () if visit is None else visit.visitors


def for_everybody() -> Context:
    """Return this context, as it is where no page is made."""
    context = copy_context()
    context.run(_visit.set, None)
    return context
