"""A projection that fails on demand, on a ledger that nothing follows by itself."""

from collections import defaultdict

from projections.activity.projector import ActivityProjector
from service.core.clock import system_clock
from service.facts.catalogue import ACCOUNTS
from service.ledger.following.catch_up import CatchUpProjection
from service.ledger.following.parking import parked
from service.ledger.following.runner import Subscription
from service.ledger.projector import Insert
from service.ledger.writing import Append
from tests.ledger.samples import CAUSE, plain
from tests.numbering import number

APPROVED = plain(ACCOUNTS["PartnerApproved"])
META = {"at": "2026-03-01T10:15:30Z", "actor": "staff:test", "request_id": "r", "mode": "accounts"}


class Brittle(ActivityProjector):
    """Makes the rows of activity, and fails at given positions."""

    name = "brittle"

    def __init__(self):
        self.error = ZeroDivisionError("secret")
        self.fail_at = set()
        self.applied = defaultdict(list)

    def project(self, recorded):
        """Return the rows, or fail, in Python or in the database."""
        if recorded.position not in self.fail_at:
            self.applied[recorded.stream_id].append(recorded.position)
            return super().project(recorded)
        if self.error is None:
            first, *_ = super().project(recorded)
            return [Insert(first.table, (*first.row[:4], None, "secret"))]  # the actor is null
        raise self.error


class Setting:
    """A ledger that nothing follows by itself, and a brittle projection to follow it."""

    def __init__(self, service, owner):
        self.service, self.ledger, self.owner = service, service.accounts, owner
        self.projector = Brittle()
        self.projection = CatchUpProjection(self.projector, system_clock)

    async def append(self, stream_id, events=1, after=0):
        """Append events to a stream and number them."""
        async with self.ledger.transaction() as transaction:
            await transaction.append(Append(stream_id, after, [APPROVED] * events, CAUSE))
        await self.number()

    async def number(self):
        """Give every waiting event its position."""
        await number(self.ledger)

    async def follow(self, failing=None):
        """Follow until there is nothing to do; the projector fails at these positions meanwhile."""
        self.projector.fail_at = failing or self.projector.fail_at
        while await Subscription(self.ledger, self.projection).step():
            pass
        if failing:
            self.projector.fail_at = set()

    async def parked(self):
        """Return positions and errors of parked events."""
        return [(one.position, one.error) for one in await parked(self.ledger.database)]

    def rows(self):
        """Return the positions that have rows."""
        query = "select distinct position from accounts.activity order by 1"
        return [position for (position,) in self.owner.execute(query).fetchall()]

    def checkpoint(self):
        """Return the follower's position."""
        query = "select position from accounts.subscriptions where name = 'brittle'"
        return self.owner.execute(query).fetchone()[0]
