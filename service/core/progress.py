"""Showing how far long work is: the work names its stages, and whoever began it shows them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

Advance = Callable[[int], object]
"""Is called with the number of steps that were done since the last call."""


class Show(Protocol):
    """Shows a stage of work, of so many steps, until it ends."""

    def __call__(
        self, label: str, length: int, *, unit: str | None = None
    ) -> AbstractContextManager[Advance]:
        """Return a context whose value counts the steps. `unit` is what they are, if that helps."""
        ...
