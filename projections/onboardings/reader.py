"""Onboardings, by a person's link, by their id, and as their partner lists them."""

from datetime import datetime

from service.ledger.database import Reader, Row
from service.ledger.sql import queries

_SQL = queries("projections.onboardings")


class OnboardingsReader(Reader):
    """Reads `onboardings` of one ledger."""

    async def by_link(self, token_hash: bytes) -> Row | None:
        """Return the onboarding whose magic link has this SHA-256."""
        return await self._reads.fetchrow(_SQL.by_link, token_hash)

    async def by_id(self, onboarding_id: str) -> Row | None:
        """Return one onboarding."""
        return await self._reads.fetchrow(_SQL.by_id, onboarding_id)

    async def page(
        self,
        partner_id: str,
        limit: int,
        before: tuple[datetime, str] | None,
        since: datetime | None = None,
    ) -> list[Row]:
        """Return a partner's onboardings, newest first, from before (started_at, id) on."""
        return await self._reads.fetch(
            _SQL.page_of_partner, partner_id, *(before or (None, None)), limit, since
        )
