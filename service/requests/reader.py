"""A partner's calls, as the developer console shows them."""

from datetime import datetime
from typing import Final, NamedTuple

from service.clock import Clock
from service.ledger.database import Database, Row
from service.ledger.sql import Sql
from service.requests.forgetting import KEPT

_PAGE = Sql("service.requests", "page")
_PAGE_FILTERED = Sql("service.requests", "page_filtered")
_ONE = Sql("service.requests", "one")
_SEEN = Sql("service.requests", "seen")
_USAGE = Sql("service.requests", "usage")
_HAS_DOCUMENTS = Sql("service.requests", "has_documents")

PAGE: Final = 50


class Filter(NamedTuple):
    """What is asked for; None leaves a column open.

    `endpoint` is method and route, `status_class` 2, 4 or 5.
    """

    code: str | None = None
    key_id: str | None = None
    endpoint: str | None = None
    status_class: int | None = None


class CallPage(NamedTuple):
    """Calls, newest first; `before` is where the next page begins, None on the last one."""

    calls: list[Row]
    before: tuple[datetime, str] | None


class RequestsReader:
    """Reads the calls of one mode. Every question names the partner: none sees another's."""

    def __init__(self, database: Database, clock: Clock) -> None:
        """`database` is that of the ledger live or test."""
        self._database = database
        self._clock = clock

    async def page(
        self, partner_id: str, wanted: Filter, before: tuple[datetime, str] | None
    ) -> CallPage:
        """Answer up to PAGE calls from before (at, request_id) on."""
        # One row more than shown tells whether there is a next page.
        asked = (partner_id, *(before or (None, None)), PAGE + 1)
        if wanted == Filter():
            rows = await self._database.fetch(_PAGE, *asked)
        else:
            rows = await self._database.fetch(_PAGE_FILTERED, *asked, *wanted)
        calls = rows[:PAGE]
        last = (calls[-1]["at"], calls[-1]["request_id"]) if len(rows) > PAGE else None
        return CallPage(calls, last)

    async def one(self, partner_id: str, request_id: str) -> Row | None:
        """Answer one call of the partner's."""
        return await self._database.fetchrow(_ONE, request_id, partner_id)

    async def seen(self, partner_id: str) -> list[Row]:
        """Answer what was called in the last thirty days and how it ended, most often first."""
        return await self._database.fetch(_SEEN, partner_id, (self._clock() - KEPT).date())

    async def has_documents(self, partner_id: str) -> bool:
        """Tell whether a claim of the partner's was ever created with a document."""
        row = await self._database.fetchrow(_HAS_DOCUMENTS, partner_id)
        return row is not None and row["found"]

    async def usage(self, partner_id: str, since: datetime) -> list[Row]:
        """Answer the calls by the minute, from a minute on."""
        return await self._database.fetch(_USAGE, partner_id, since)
