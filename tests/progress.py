"""Progress that a test counts, or does not look at."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.core.progress import Advance


@dataclass
class Shown:
    """Counts the steps of each stage of some work, by its label: done, and announced."""

    stages: dict[str, tuple[int, int]] = field(default_factory=dict)

    @contextmanager
    def __call__(self, label: str, length: int, *, unit: str | None = None) -> Generator[Advance]:
        """Count the steps of a stage."""
        label = f"{label} ({unit})" if unit else label
        self.stages[label] = (0, length)

        def advance(steps: int) -> None:
            self.stages[label] = (self.stages[label][0] + steps, length)

        yield advance
