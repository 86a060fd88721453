"""Read a partner's calls for the developer console."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from service.core.clock import Clock
from service.ledger.database import Database, Row
from service.ledger.sql import queries
from service.request_log.retention import KEPT

_SQL = queries("service.request_log")

PAGE: Final = 50
COUNTS_MAX: Final = 50_000
"""Counts that a filtered page looks through: some tens of milliseconds. A partner has as many in a
minute as it calls endpoints by different keys, with different outcomes."""
LOOKED_MAX: Final = 1_000
"""Claims at either end of a partner's that are looked at for a document."""

Unit = Literal["minute", "hour", "day"]
"""Of the slots that calls are counted by; hours and days are those of UTC."""


class Filter(NamedTuple):
    """Which calls to return; None is any.

    `endpoint` is method and route, `status_class` 2, 4 or 5.
    """

    code: str | None = None
    key_id: str | None = None
    endpoint: str | None = None
    status_class: int | None = None


class CallPage(NamedTuple):
    """Calls, newest first; `before` is where the next page begins, None on the last page.

    `looked_to` is the minute at which a page ends that would have had to look through too much.
    """

    calls: list[Row]
    before: tuple[datetime, str] | None
    looked_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class RequestsReader:
    """Reads the calls of one mode; every query is limited to one partner's.

    `database` is that of the ledger live or test.
    """

    database: Database
    clock: Clock

    async def page(
        self,
        partner_id: str,
        wanted: Filter,
        before: tuple[datetime, str] | None,
        limit: int = PAGE,
    ) -> CallPage:
        """Return up to `limit` calls from before (at, request_id) on.

        Of those that match a filter, fewer where they are rare among more than COUNTS_MAX counts.
        """
        # One row more than a page has shows whether there is a next one.
        place, reads = before or (None, None), self.database.reads
        looked_to: datetime | None = None
        if wanted == Filter():
            rows = await reads.fetch(_SQL.page, partner_id, *place, limit + 1)
        else:
            given = (partner_id, *place, *wanted, COUNTS_MAX)
            row = await reads.fetchrow(_SQL.looked_to, *given)
            looked_to = None if row is None else row["minute"]
            given = (partner_id, *place, limit + 1, *wanted, looked_to)
            rows = await reads.fetch(_SQL.page_filtered, *given)
        calls = rows[:limit]
        if len(rows) > limit:
            return CallPage(calls, (calls[-1]["at"], calls[-1]["request_id"]))
        # No request id comes before the empty one: calls of that moment itself were looked at.
        return CallPage(calls, looked_to and (looked_to, ""), looked_to)

    async def one(self, partner_id: str, request_id: str) -> Row | None:
        """Return one of the partner's calls, or None."""
        return await self.database.reads.fetchrow(_SQL.one, request_id, partner_id)

    async def seen(self, partner_id: str, back: timedelta = KEPT) -> list[Row]:
        """Return counts of calls by endpoint and outcome, highest first, of so many days and today.

        With no time to go back, those of today alone (UTC).
        """
        since = (self.clock().astimezone(UTC) - back).date()
        return await self.database.reads.fetch(_SQL.seen, partner_id, since)

    async def has_documents(self, partner_id: str) -> bool:
        """Return whether one of the partner's first or last LOOKED_MAX claims has a document.

        Integrations that use documents have some there; others may have any number of claims.
        """
        row = await self.database.reads.fetchrow(_SQL.has_documents, partner_id, LOOKED_MAX)
        return row is not None and row["found"]

    async def usage(self, partner_id: str, since: datetime, unit: Unit) -> list[Row]:
        """Return the calls by slots of this unit, and by endpoint, from a slot on."""
        reads = self.database.reads
        if unit == "day":
            return await reads.fetch(_SQL.usage_of_days, partner_id, since.astimezone(UTC).date())
        statement = _SQL.usage_of_hours if unit == "hour" else _SQL.usage
        return await reads.fetch(statement, partner_id, since)
