"""How often people change something in one day: what a stream says of it, and how much may be.

Events are kept for ever, and whoever needs a state reads all of its stream at least once.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from service.core.errors import Refusal
from service.ledger.events import Event, Recorded

CHANGES_MAX: Final = 500
"""Of one stream in a day (UTC), by all of its people together."""

_PEOPLE: Final = ("member:", "customer:")
_REFUSED: Final = (
    f"{CHANGES_MAX} changes have been made here today, and more can be made from 00:00 UTC."
    " What takes access away is possible now."
)


class Changes(NamedTuple):
    """The last day (UTC) on which a stream's people changed something, and how often."""

    day: date = date.min
    made: int = 0

    def after(self, past: Iterable[Recorded], topics: Collection[type[Event]]) -> "Changes":
        """Return the changes after further events, of which those of `topics` are counted."""
        day, made = self
        for one in past:
            if type(one.event) in topics and one.meta.actor.startswith(_PEOPLE):
                on = one.meta.at.date()
                # Two clocks may differ around midnight: an earlier day does not return.
                day, made = (on, 1) if on > day else (day, made + 1)
        return Changes(day, made)

    def allow(
        self, events: Sequence[Event], topics: Collection[type[Event]], actor: str, now: datetime
    ) -> None:
        """Refuse with `rate_limited` another change by its people beyond the bound of the day.

        The team is not counted, nor is what has no event of `topics`: a removal, a revocation.
        """
        if not actor.startswith(_PEOPLE) or not any(type(event) in topics for event in events):
            return
        if self.made >= CHANGES_MAX and now.date() <= self.day:
            tomorrow = datetime.combine(self.day + timedelta(days=1), time(), now.tzinfo)
            seconds = int((tomorrow - now).total_seconds()) + 1
            raise Refusal("rate_limited", _REFUSED, retry_after_seconds=seconds)
