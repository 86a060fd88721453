"""Webhook endpoints, as senders and the console read them."""

from datetime import datetime
from typing import NamedTuple

from service.ledger.database import Database, Row
from service.ledger.sql import queries

_SQL = queries("projections.endpoints")


class Sendable(NamedTuple):
    """An endpoint that takes events now. `types` is empty where it wants all."""

    endpoint_id: str
    partner_id: str
    url: str
    types: tuple[str, ...]
    secret_version: int
    secret_rotated_at: datetime | None


class EndpointsReader:
    """Reads `webhook_endpoints` of the ledger of accounts."""

    def __init__(self, accounts: Database) -> None:
        """`accounts` is the database of the ledger of accounts."""
        self._accounts = accounts

    async def of(self, partner_id: str) -> list[Row]:
        """Return a partner's endpoints, oldest first."""
        return await self._accounts.reads.fetch(_SQL.list_endpoints, partner_id)

    async def sendable(self, *endpoint_ids: str) -> dict[str, Sendable]:
        """Return those of some endpoints that events are sent to now, by their ids."""
        rows = await self._accounts.reads.fetch(_SQL.sendable, endpoint_ids)
        found = [Sendable(*row)._replace(types=tuple(row["types"].split())) for row in rows]
        return {one.endpoint_id: one for one in found}
