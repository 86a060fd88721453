"""The events that a call caused, as its partner may see them: topic, position, time."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

EVENTS_MAX: Final = 100
PATIENCE_SECONDS: Final = 1.5
"""Longer than it ever takes, but where the read model is far behind."""


class Timeline(Protocol):
    """Finds what happened by a request."""

    async def timeline(self, subject: str, entries_max: int) -> Sequence[Any]:
        """Return the events, oldest first; each has `position`, `topic` and `meta`."""
        ...


class Caused(NamedTuple):
    """An event; `position` is None before it is numbered."""

    topic: str
    position: int | None
    at: datetime


async def caused(timeline: Timeline, partner_id: str, request_id: str) -> list[Caused] | None:
    """Return the events of a partner's own request; None where that takes too long just now.

    Only what the partner itself caused is shown, whatever else may name the request.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            entries = await timeline.timeline(request_id, EVENTS_MAX)
    except TimeoutError:
        return None
    return [
        Caused(entry.topic, entry.position, entry.meta.at)
        for entry in entries
        if entry.meta is not None
        and entry.meta.request_id == request_id
        and entry.meta.actor.startswith(f"partner:{partner_id}/")
    ]
