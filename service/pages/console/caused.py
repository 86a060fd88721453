"""The events that a call caused, as its partner may see them: topic, position, time."""

import asyncio
from datetime import datetime
from typing import Final, NamedTuple

from projections.activity.reader import ActivityReader

EVENTS_MAX: Final = 100
PATIENCE_SECONDS: Final = 1.5
"""Longer than it ever takes, unless the read model is far behind."""


class Caused(NamedTuple):
    """An event; `position` is None before it is numbered."""

    topic: str
    position: int | None
    at: datetime


async def caused(activity: ActivityReader, partner_id: str, request_id: str) -> list[Caused] | None:
    """Return the events of a partner's own request; None where that takes too long just now.

    Only what the partner itself caused is shown, whatever else may name the request.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            entries = await activity.timeline(request_id, EVENTS_MAX)
    except TimeoutError:
        return None
    return [
        Caused(entry.topic, entry.position, entry.meta.at)
        for entry in entries
        if entry.meta is not None
        and entry.meta.request_id == request_id
        and entry.meta.actor.startswith(f"partner:{partner_id}/")
    ]
