"""The walk through a log's rows, comparing with every checkpoint on the way."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.evidence.verdict import Fault
from service.evidence.verify.actor_faults import ActorFaults
from service.evidence.verify.actors import Actors
from service.evidence.verify.expectations import Expected
from service.evidence.verify.rows import LogRow, Macs, Rows


class Held(NamedTuple):
    """The size up to which a checkpoint proved the log, and the tree there."""

    size: int = 0
    tree: bytes = b""


class Found(NamedTuple):
    """A fault. `is_range`: the position is only the first one at which the fault can be."""

    fault: Fault
    is_range: bool = False


class Walk:
    """Takes the rows in their order and finds the first fault, at the lowest position."""

    def __init__(self, expected: Sequence[Expected], macs: Macs | None = None) -> None:
        """Begin with an empty log; `expected` is what it is compared with, by size.

        Without `actors`, who could act is not checked; without `macs`, who wrote the events is not.
        `confirmed` are the faults of actors of a log that was not walked through.
        """
        self.rows = Rows(macs)
        self.actors: Actors | None = None
        self.confirmed = ActorFaults()
        self.held: set[tuple[str, int]] = set()
        self.last_held = Held()
        self.unplaced: Fault | None = None
        self.behind = 0
        """The size of the largest checkpoint that a standby's log has not come to."""
        self.expected = expected
        self._ahead = list(reversed(expected))

    def close(self) -> None:
        """Forget the streams, some of which may be on disk."""
        self.rows.streams.close()

    def take(self, rows: Iterable[LogRow]) -> Found | None:
        """Take the next rows; return the first fault."""
        for row in rows:
            fault = self.rows.take(row)
            if fault is not None:
                return Found(fault)
            if self.actors is not None:
                self.actors.take(row)
            if self._ahead and self._ahead[-1].size <= self.rows.size:
                found = self.compare()
                if found is not None:
                    return found
        return None

    def end(self) -> Found | None:
        """Return the fault if something was expected beyond the end of the log."""
        size = self.rows.size
        for expected in reversed(self._ahead):
            if expected.root is not None and expected.may_be_behind:
                self.behind = expected.size
            elif expected.root is not None:
                missing = f"The log ends at position {size}. {expected.sentence} covers more."
                return Found(Fault(size + 1, missing))
            else:
                self.unplaced = self.unplaced or Fault(size or None, expected.sentence)
        return None

    def compare(self) -> Found | None:
        """Compare the tree with everything that is expected at its size."""
        size = self.rows.size
        while self._ahead and self._ahead[-1].size <= size:
            expected = self._ahead.pop()
            if expected.size < 1 and expected.root is None:
                # No event is concerned: reported if nothing else is wrong.
                self.unplaced = self.unplaced or Fault(None, expected.sentence)
            elif expected.root is None:
                return Found(Fault(size, expected.sentence))
            elif expected.root != self.rows.tree.root():
                return self._mismatch(expected)
            elif expected.tree not in {None, self.rows.tree.to_bytes()}:
                sentence = (
                    f"{expected.sentence} is kept with a tree that is not that of its events."
                )
                return Found(Fault(size or None, sentence))
            else:
                self.held.add((expected.origin, expected.size))
                if size > self.last_held.size:
                    self.last_held = Held(size, self.rows.tree.to_bytes())
        return None

    def _mismatch(self, expected: Expected) -> Found:
        size, first = self.rows.size, self.last_held.size + 1
        if first > size:  # others of this size held: this one is wrong
            sentence = f"{expected.sentence} contradicts another one that holds."
            return Found(Fault(size or None, sentence))
        where = (
            f"one of the events at positions {first} to {size}"
            if first < size
            else (f"the event at position {size}")
        )
        sentence = f"{expected.sentence} does not hold: {where} is not what was signed."
        return Found(Fault(first, sentence), is_range=True)
