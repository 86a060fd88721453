"""Events that a command went on without, in a person's words."""

from collections.abc import Sequence

from service.cli.verdict import counted, listed
from service.ledger.decoding import Unread


def gone_without(unread: Sequence[Unread]) -> str:
    """Return where these events are, what is wrong with each, and what to do."""
    faults = listed([f"{_place(one)}: {one.fault}" for one in unread])
    return (
        f'gone on without {counted(len(unread), "event")} ({faults}): "Events set aside" in the '
        "runbook says what to do, then run the same command again"
    )


def _place(event: Unread) -> str:
    if event.position:
        return f"position {event.position}"
    return f"not numbered, append_id {event.append_id}"
