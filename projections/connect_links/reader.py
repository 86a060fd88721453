"""Connect links, by the token that a customer holds and as their partner lists them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, get_args

from service.ledger.database import Reader, Row
from service.ledger.sql import Sql, queries
from service.ledger.transaction import Transaction

_SQL = queries("projections.connect_links")


async def link_by_token(transaction: Transaction, token_hash: bytes) -> Row | None:
    """Return the link, with `expired` by the database's clock; None for an unknown token."""
    return await transaction.fetchrow(_SQL.by_token, token_hash)


LOOKED_MAX: Final = 1_000
"""Links that a page looks at where it shows those in one state, which time changes."""

State = Literal["issued", "redeemed", "declined", "expired"]
STATES: Final[Sequence[State]] = get_args(State)

Place = tuple[datetime, str]
"""When a link was issued, and its id."""


class LinkFilter(NamedTuple):
    """Which links: in a state; one by its id, or those for one of the partner's users."""

    state: State | None = None
    sought: str | None = None
    oldest_first: bool = False


class FoundLinks(NamedTuple):
    """A page, and the link from which the next one goes on, None at the end."""

    links: Sequence[Row]
    last: Place | None


class ConnectLinksReader(Reader):
    """Reads `connect_links` of one ledger."""

    async def one(self, partner_id: str, link_id: str) -> Row | None:
        """Return one of a partner's links, or None."""
        return await self._reads.fetchrow(_SQL.of_partner, partner_id, link_id)

    async def page(
        self, partner_id: str, wanted: LinkFilter, limit: int, last: Place | None
    ) -> FoundLinks:
        """Return up to `limit` of a partner's links; fewer where few are in a wanted state."""
        if wanted.sought is not None and wanted.sought.startswith("lnk_"):
            found = await self.one(partner_id, wanted.sought)
            rows, looks = [found] if found else [], limit
        else:
            looks = limit if wanted.state is None else LOOKED_MAX
            statement, more = _statement(wanted)
            given = (partner_id, *(last or (None, None)), looks + 1, *more)
            rows = await self._reads.fetch(statement, *given)
        looked = rows[:looks]
        shown = [row for row in looked if wanted.state in {None, row["state"]}]
        if len(shown) > limit:
            return FoundLinks(shown[:limit], _place(shown[limit - 1]))
        return FoundLinks(shown, _place(looked[-1]) if len(rows) > looks else None)


def _statement(wanted: LinkFilter) -> tuple[Sql, tuple[str, ...]]:
    oldest = wanted.oldest_first
    if wanted.sought is not None:
        named = _SQL.page_of_partner_user_oldest if oldest else _SQL.page_of_partner_user
        return named, (wanted.sought,)
    return (_SQL.page_of_partner_oldest if oldest else _SQL.page_of_partner), ()


def _place(link: Row) -> Place:
    return link["issued_at"], link["link_id"]
