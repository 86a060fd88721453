"""Who may call, as authentication and the team's commands ask."""

from service.ledger.database import Database, Row
from service.ledger.sql import Sql

_AUTHENTICATE = Sql("projections.partners", "authenticate")
_LIST_PARTNERS = Sql("projections.partners", "list_partners")
_LIST_KEYS = Sql("projections.partners", "list_keys")
_FIND_KEY = Sql("projections.partners", "find_key")


class PartnersReader:
    """Reads `partners` and `api_keys` of the ledger of accounts."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger of accounts."""
        self._database = database

    async def authenticate(self, partner_id: str, key_id: str) -> Row | None:
        """Answer partner and key in one row; None without such a partner, key columns may be."""
        return await self._database.fetchrow(_AUTHENTICATE, partner_id, key_id)

    async def partners(self, partner_id: str | None = None) -> list[Row]:
        """Answer all partners, or the one asked for."""
        return await self._database.fetch(_LIST_PARTNERS, partner_id)

    async def keys(self, partner_id: str) -> list[Row]:
        """Answer a partner's keys, without anything secret."""
        return await self._database.fetch(_LIST_KEYS, partner_id)

    async def partner_of_key(self, key_id: str) -> str | None:
        """Answer whose key this is, if it is one."""
        row = await self._database.fetchrow(_FIND_KEY, key_id)
        return None if row is None else row["partner_id"]
