"""The history of an id, or of a request, over several ledgers (decision 7)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from projections.activity.reader import (
    EVERYTHING,
    ActivityReader,
    TimelineEntry,
    TimelineFilter,
    merged,
)
from service.ledger.ledger import Ledger

SECRET: Final = ("secret_hash", "token_hash")
"""Fields of events that are never shown: hashes of credentials."""

LOOKED_AT_MAX: Final = 1000
"""The newest events that hold an id as a value: only some may have it in a field that names it."""

NUMBERED: Final = 2**63 - 1
"""A page before it has the events with a position, and none that waits for one."""


class History(NamedTuple):
    """The newest events, oldest first; `is_cut` if there are more.

    `looked_to`: for each ledger, the position before which nothing was read, because it was too
    much.
    """

    entries: Sequence[TimelineEntry]
    is_cut: bool
    looked_to: Mapping[str, int]


async def history(
    ledgers: Sequence[Ledger],
    subject: str,
    limit: int,
    before: Mapping[str, int] | None = None,
    wanted: TimelineFilter = EVERYTHING,
    beyond_max: int | None = None,
) -> History:
    """Return at most `limit` events that name an id, or that a request caused, of those `wanted`.

    `before` selects an older page: for each ledger, the position that its events precede. With
    `beyond_max`, a page looks at no more events of a ledger where its index has not come to them.
    """
    start = before or {}
    timelines = {
        one.name: await ActivityReader(one).wanted(
            subject, limit + 1, start.get(one.name), wanted, beyond_max=beyond_max
        )
        for one in ledgers
    }
    entries = merged([one.entries for one in timelines.values()])
    # Where a page has no room for all that was found, the next one begins with the rest.
    left = {entry.ledger for entry in entries[:-limit]}
    looked_to = {
        name: one.looked_to for name, one in timelines.items() if one.looked_to and name not in left
    }
    return History(entries[-limit:], bool(left or looked_to), looked_to)


async def is_lost(ledgers: Sequence[Ledger], subject: str) -> bool:
    """Return whether a log has an event that names an id: it is read whole, without an index."""
    for ledger in ledgers:
        if (await ActivityReader(ledger).wanted(subject, LOOKED_AT_MAX, search=True)).entries:
            return True
    return False


def older_than(found: History, before: Mapping[str, int] | None = None) -> Mapping[str, int]:
    """Return the `before` of the next older page; `before` is that of the page that was `found`.

    Each ledger's entries are its newest, so no event is left out or repeated. Only events that
    still wait for a number beyond a whole page of such are skipped for now.
    """
    start = dict(before or {})
    for entry in reversed(found.entries):
        start[entry.ledger] = NUMBERED if entry.position is None else entry.position
    return start | dict(found.looked_to)
