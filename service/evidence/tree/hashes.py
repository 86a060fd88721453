"""Where the hashes of a tree are stored: leaves in the log, nodes above them in `tree_nodes`.

The worker derives the nodes, and no reader trusts them: each compares the root that they lead to
with a signed one.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

import structlog

from service.ledger.database import Database, LedgerError, Row
from service.ledger.sql import Sql, queries

_SQL = queries("service.evidence.tree")

log = structlog.get_logger()


class Fetch(Protocol):
    """Returns the rows of a statement: a pool's, or a transaction's."""

    def __call__(self, sql: Sql, /, *args: object) -> Awaitable[Sequence[Row]]:
        """Run it with these arguments."""
        ...


class Hashes(Protocol):
    """Hashes of a log's tree, by tiles, joined; missing ones are left out."""

    async def leaves(self, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return tiles of the first `size` leaves."""
        ...

    async def nodes(self, level: int, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return tiles of a level's first `size` stored nodes."""
        ...

    async def stored(self) -> Mapping[int, int]:
        """Return how many nodes of each level are stored, counted from the first."""
        ...

    async def forget(self) -> None:
        """Delete all stored nodes, because some are wrong; the worker stores them anew."""
        ...


class StoredHashes:
    """The hashes of a ledger's database."""

    def __init__(self, database: Database, fetch: Fetch | None = None) -> None:
        """`fetch` runs statements in a transaction of the caller's."""
        self._database = database
        self._fetch: Fetch = fetch or database.background.fetch

    async def leaves(self, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return tiles of the first `size` leaves."""
        rows = await self._fetch(_SQL.leaf_tiles, list(tiles), size)
        return {row["tile"]: row["hashes"] for row in rows}

    async def nodes(self, level: int, tiles: Sequence[int], size: int) -> Mapping[int, bytes]:
        """Return tiles of a level's first `size` stored nodes."""
        rows = await self._fetch(_SQL.node_tiles, level, list(tiles), size)
        return {row["tile"]: row["hashes"] for row in rows}

    async def stored(self) -> Mapping[int, int]:
        """Return how many nodes of each level are stored, counted from the first."""
        rows = await self._fetch(_SQL.stored_nodes)
        return {row["level"]: row["nodes"] for row in rows if row["nodes"]}

    async def forget(self) -> None:
        """Delete all stored nodes, because some are wrong; log it. The worker stores them anew."""
        schema = self._database.schema
        log.error("tree nodes altered", ledger=schema)
        try:
            async with self._database.background.transaction() as connection:
                await connection.execute(_SQL.note_forgotten.on(schema))
                await connection.execute(_SQL.forget_nodes.on(schema))
        except LedgerError:  # the next reader finds it again
            log.warning("tree nodes stay", ledger=self._database.schema)
