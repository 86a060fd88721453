"""How often people change something in one day: what a stream says of it, and how much may be.

Events are kept for ever, and whoever needs a state reads all of its stream at least once.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import compress
from typing import Final, NamedTuple

from service.core.errors import Refusal
from service.ledger.events import Event, Recorded

CHANGES_MAX: Final = 500
"""Of one stream in a day (UTC), by all of its people together."""
RENEWALS: Final = 2
"""Times CHANGES_MAX is the bound of what only puts a new key or secret in an old one's place: that
helps after a leak, and whoever has a session could use up all other changes."""

_PEOPLE: Final = ("member:", "customer:")
_REFUSED: Final = (
    "{} such changes have been made here today, and more can be made from 00:00 UTC."
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
        self,
        events: Sequence[Event],
        topics: Collection[type[Event]],
        actor: str,
        now: datetime,
        *,
        renews: bool = False,
    ) -> None:
        """Refuse with `rate_limited` another change by its people beyond the bound of the day.

        The team is not counted, nor is what has no event of `topics`: a removal, a revocation.
        `renews`: a key or secret gets a successor.
        """
        if not actor.startswith(_PEOPLE) or not any(type(event) in topics for event in events):
            return
        made_max = CHANGES_MAX * (RENEWALS if renews else 1)
        if self.made >= made_max and now.date() <= self.day:
            tomorrow = datetime.combine(self.day + timedelta(days=1), time(), now.tzinfo)
            seconds = int((tomorrow - now).total_seconds()) + 1
            raise Refusal("rate_limited", _REFUSED.format(made_max), retry_after_seconds=seconds)


class Budgets(NamedTuple):
    """The changes that took a fresh proof of who made them, and the others.

    Each has the bound of the day by itself: whoever has no more than a session uses up their own.
    """

    proven: Changes = Changes()
    others: Changes = Changes()

    def after(
        self,
        past: Sequence[Recorded],
        topics: Collection[type[Event]],
        proven: Sequence[bool],
    ) -> "Budgets":
        """Return the changes after further events; `proven` says which of them take a proof."""
        others = [not one for one in proven]
        return Budgets(
            self.proven.after(compress(past, proven), topics),
            self.others.after(compress(past, others), topics),
        )

    def of(self, proven: Sequence[bool]) -> Changes:
        """Return what a command's events are counted with."""
        return self.proven if any(proven) else self.others
