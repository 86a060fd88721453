"""Connect links, by the token that a customer holds."""

from service.ledger.database import Row
from service.ledger.ledger import Transaction
from service.ledger.sql import Sql

_BY_TOKEN = Sql("projections.connect_links", "by_token")


async def link_by_token(transaction: Transaction, token_hash: bytes) -> Row | None:
    """Answer the link, with `expired` by the database's clock; None for an unknown token."""
    return await transaction.fetchrow(_BY_TOKEN, token_hash)
