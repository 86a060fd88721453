"""The connections for background work, of which webhooks leave most to the others.

Dozens of endpoints may be served at a time: if each took a connection when it liked, numbering and
what follows the log would stand in line behind them.
"""

import asyncio
from typing import Final

from service.ledger.database import Database, Row
from service.ledger.sql import Sql

STATEMENTS_AT_ONCE_MAX: Final = 2
"""Of the four connections that a ledger has for background work."""


class SharedPool:
    """A ledger's connections for background work, two at a time."""

    def __init__(self, database: Database) -> None:
        """`database` is the mode's."""
        self._database = database
        self._places = asyncio.Semaphore(STATEMENTS_AT_ONCE_MAX)

    async def fetch(self, sql: Sql, *args: object) -> list[Row]:
        """Return the rows of one statement."""
        async with self._places:
            return await self._database.background.fetch(sql, *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement, if there is one."""
        async with self._places:
            return await self._database.background.fetchrow(sql, *args)
