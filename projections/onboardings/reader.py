"""Onboardings, by a person's link, by their id, and as their partner lists them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args
from uuid import UUID

from service.ledger.database import Reader, Row
from service.ledger.sql import queries

_SQL = queries("projections.onboardings")

LOOKED_MAX: Final = 1_000
"""Onboardings that a page looks at where it shows those in one state, which time changes."""

State = Literal["started", "completed", "expired"]
STATES: Final[Sequence[State]] = get_args(State)

Place = tuple[datetime, str]
"""When an onboarding was started, and its id."""


class OnboardingFilter(NamedTuple):
    """Which onboardings: in a state; those that have an id, or one of the streams, where given."""

    state: State | None = None
    onboarding_id: str | None = None
    streams: Sequence[UUID] | None = None


class FoundOnboardings(NamedTuple):
    """A page, and the onboarding from which the next one goes on, None at the end."""

    onboardings: Sequence[Row]
    last: Place | None


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
        before: Place | None,
        since: datetime | None = None,
    ) -> list[Row]:
        """Return a partner's onboardings, newest first, from before (started_at, id) on."""
        return await self._reads.fetch(
            _SQL.page_of_partner, partner_id, *(before or (None, None)), limit, since
        )

    async def found(
        self, partner_id: str, wanted: OnboardingFilter, limit: int, last: Place | None
    ) -> FoundOnboardings:
        """Return up to `limit` of those wanted, newest first; fewer where few are in a state."""
        looks = limit if wanted.state is None else LOOKED_MAX
        if wanted.onboarding_id is None and wanted.streams is None:
            rows = await self.page(partner_id, looks + 1, last)
        else:
            sought = (wanted.onboarding_id, list(wanted.streams or ()))
            rows = await self._reads.fetch(_SQL.of_partner, partner_id, *sought)
        looked = rows[:looks]
        shown = [row for row in looked if wanted.state in {None, row["state"]}]
        if len(shown) > limit:
            return FoundOnboardings(shown[:limit], _place(shown[limit - 1]))
        return FoundOnboardings(shown, _place(looked[-1]) if len(rows) > looks else None)


def _place(onboarding: Row) -> Place:
    return onboarding["started_at"], onboarding["onboarding_id"]
