"""Onboardings, by the link that a person follows or by their id."""

from service.ledger.database import Database, Row
from service.ledger.sql import Sql

_BY_LINK = Sql("projections.onboardings", "by_link")
_BY_ID = Sql("projections.onboardings", "by_id")


class OnboardingsReader:
    """Reads `onboardings` of one ledger."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger live or test."""
        self._database = database

    async def by_link(self, token_hash: bytes) -> Row | None:
        """Answer the onboarding whose magic link has this SHA-256."""
        return await self._database.fetchrow(_BY_LINK, token_hash)

    async def by_id(self, onboarding_id: str) -> Row | None:
        """Answer one onboarding."""
        return await self._database.fetchrow(_BY_ID, onboarding_id)
