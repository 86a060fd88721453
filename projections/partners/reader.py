"""Who may call, as authentication, the team's commands and the developer console ask."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from service.ledger.batching import Batcher
from service.ledger.database import Database, Row
from service.ledger.sql import queries

_SQL = queries("projections.partners")


ASKS_MAX = 256
"""Requests whose callers are read in one statement."""


class _Ask(NamedTuple):
    """The ids that a request presents. Each has its own key: no two exclude each other."""

    partner_id: str
    key_id: str
    key: object
    size: int = 0


class PartnersReader:
    """Reads `partners`, `api_keys` and `members` of the ledger of accounts."""

    def __init__(self, database: Database, make_batcher: type[Batcher[Any, Any]] = Batcher) -> None:
        """`database` is that of the ledger of accounts."""
        self._reads = database.reads
        self._asks: Batcher[_Ask, Row] = make_batcher(
            self._read_all,
            batch_max=ASKS_MAX,
            concurrency=1,
            deadline=self._reads.deadline_seconds,
        )

    async def authenticate(self, partner_id: str, key_id: str) -> Row | None:
        """Return partner and key in one row; None without such a partner, key columns may be.

        Requests that come while a read is under way share the next one, which begins after each of
        them came: a revoked key is refused from the next request on.
        """
        row = await self._asks.submit(_Ask(partner_id, key_id, object()))
        return None if row["status"] is None else row

    async def _read_all(self, asks: Sequence[_Ask]) -> list[Row]:
        return await self._reads.fetch(
            _SQL.authenticate, [ask.partner_id for ask in asks], [ask.key_id for ask in asks]
        )

    async def partners(self, partner_id: str | None = None) -> list[Row]:
        """Return all partners, or the one asked for."""
        return await self._reads.fetch(_SQL.list_partners, partner_id)

    async def is_approved(self, partner_id: str) -> bool:
        """Return whether a partner may act now; links of one that was revoked lead nowhere."""
        rows = await self.partners(partner_id)
        return bool(rows) and rows[0]["status"] == "approved"

    async def keys(self, partner_id: str) -> list[Row]:
        """Return a partner's keys, without anything secret."""
        return await self._reads.fetch(_SQL.list_keys, partner_id)

    async def member(self, partner_id: str, address_hash: str) -> Row | None:
        """Return a partner and the member of its team who has this address, if one has."""
        return await self._reads.fetchrow(_SQL.member, partner_id, bytes.fromhex(address_hash))

    async def members(self, partner_id: str) -> list[Row]:
        """Return who belongs to a partner's team: ids and when each was added."""
        return await self._reads.fetch(_SQL.list_members, partner_id)

    async def partners_of(self, address_hash: str) -> list[Row]:
        """Return the partners whose team a person belongs to."""
        return await self._reads.fetch(_SQL.partners_of_address, bytes.fromhex(address_hash))

    async def sandbox(self, partner_id: str) -> Row | None:
        """Return which epoch a partner's sandbox is in, and since when."""
        return await self._reads.fetchrow(_SQL.sandbox, partner_id)

    async def partner_of_key(self, key_id: str) -> str | None:
        """Return whose key this is, if it is one."""
        row = await self._reads.fetchrow(_SQL.find_key, key_id)
        return None if row is None else row["partner_id"]
