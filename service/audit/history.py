"""What happened to a thing, or by a request, over several ledgers (decision 8)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from projections.activity.reader import ActivityReader, Entry, merged
from service.ledger.ledger import Ledger


class History(NamedTuple):
    """The newest events, oldest first; `is_cut` where there are more."""

    entries: Sequence[Entry]
    is_cut: bool


async def history(ledgers: Iterable[Ledger], subject: str, limit: int) -> History:
    """Answer at most `limit` events that name an id of ours, or that a request caused."""
    timelines = [await ActivityReader(one).timeline(subject, limit + 1) for one in ledgers]
    entries = merged(timelines)
    return History(entries[-limit:], len(entries) > limit)
