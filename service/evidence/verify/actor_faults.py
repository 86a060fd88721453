"""What is said of events that are not of whom they name."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from service.evidence.verdict import Fault

UNREGISTERED: Final = "no such entity was registered"
_SHOWN_MAX: Final = 120


class Late(NamedTuple):
    """An event within its actor's time, up to `until`, that follows events which are beyond it.

    It is a fault only if it was appended behind such events, too (late_actors.py).
    """

    fault: Fault
    append_id: int
    stream: UUID
    at: str
    until: str


class ActorFaults(NamedTuple):
    """How many events are not of whom they name, and the first of them.

    Those that are `late` are not among them yet.
    """

    first: Fault | None = None
    number: int = 0
    late: Sequence[Late] = ()

    @property
    def told(self) -> Fault | None:
        """The first one, with the number of others."""
        others = self.number - 1
        if self.first is None or not others:
            return self.first
        also = "another event" if others == 1 else f"{others} other events"
        return self.first._replace(sentence=f"{self.first.sentence} So it is with {also}.")

    def joined(self, other: "ActorFaults") -> "ActorFaults":
        """Return these and those of another part of the log."""
        both = [one for one in (self.first, other.first) if one is not None]
        first = min(both, key=lambda one: one.position or 0, default=None)
        return ActorFaults(first, self.number + other.number, [*self.late, *other.late])


def actor_fault(position: int, actor: str, why: str) -> Fault:
    """Return that an event is not of whom it names."""
    return Fault(position, f"The event at position {position} is not of {shown(actor)}: {why}.")


def shown(text: str) -> str:
    """Return what an event says, fit for a terminal: anybody may have written it."""
    cut = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
    return "".join(mark if mark.isascii() and mark.isprintable() else "?" for mark in cut)
