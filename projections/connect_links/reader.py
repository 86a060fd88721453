"""Connect links, by the token that a customer holds and as their partner lists them."""

from datetime import datetime

from service.ledger.database import Reader, Row
from service.ledger.ledger import Transaction
from service.ledger.sql import queries

_SQL = queries("projections.connect_links")


async def link_by_token(transaction: Transaction, token_hash: bytes) -> Row | None:
    """Return the link, with `expired` by the database's clock; None for an unknown token."""
    return await transaction.fetchrow(_SQL.by_token, token_hash)


class ConnectLinksReader(Reader):
    """Reads `connect_links` of one ledger."""

    async def page(
        self, partner_id: str, limit: int, before: tuple[datetime, str] | None
    ) -> list[Row]:
        """Return a partner's links, newest first, from before (issued_at, link_id) on."""
        return await self._reads.fetch(
            _SQL.page_of_partner, partner_id, *(before or (None, None)), limit
        )
