"""Events that had no effect on a command, in a person's words."""

from collections.abc import Sequence

from service.cli.verdict import listed
from service.core.counted import counted
from service.ledger.decoding import Unread


def without_effect(unread: Sequence[Unread]) -> str:
    """Return where these events are, what is wrong with each, and where it says what to do."""
    faults = listed([f"{_place(one)}: {one.fault}" for one in unread])
    events = counted(len(unread), "event")
    return f'{events} had no effect ({faults}); see "Events set aside" in the runbook'


def _place(event: Unread) -> str:
    if event.position:
        return f"position {event.position}"
    return f"not numbered, append_id {event.append_id}"
