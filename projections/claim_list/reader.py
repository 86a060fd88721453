"""`GET /claims`: one round trip a page, whatever the number of claims; and the customer's."""

from datetime import datetime
from typing import Final, NamedTuple

from service.core.errors import Refusal, invalid
from service.ledger.database import Reader, Row
from service.ledger.sql import queries

_SQL = queries("projections.claim_list")

PAGE_BYTES_MAX: Final = 1024 * 1024
"""Of a page's `partner_invoice_ids`. A page has at least one claim, whatever it has of them."""

_NEWEST: Final = 2**63 - 1


class ClaimPage(NamedTuple):
    """A page: the rows of claims, the entity's name and state, and the next page's token."""

    claims: list[Row]
    name: str
    disconnected_at: datetime | None
    next_page_token: str | None


class ClaimListReader(Reader):
    """Reads `claim_list` of one ledger."""

    async def page(
        self,
        partner_id: str,
        entity_id: str,
        *,
        limit: int,
        page_token: str | None,
        partner_user_id: str | None,
    ) -> ClaimPage:
        """Return a page of at most `limit` claims, newest first, from after `page_token` on.

        It is shorter where its claims would have more than `PAGE_BYTES_MAX`.
        Refuses with `entity_not_found`, `entity_not_owned`, or `validation_failed` for a token that
        is not the id of one of these claims (contract 4.5).
        """
        # One row more than asked for tells whether there is a next page.
        rows = await self._reads.fetch(
            _SQL.page, partner_id, entity_id, page_token, limit + 1, partner_user_id, PAGE_BYTES_MAX
        )
        if not rows:
            raise Refusal("entity_not_found")
        first = rows[0]
        if first["connected_at"] is None:
            raise Refusal("entity_not_owned")
        if not first["token_found"]:
            raise invalid("page_token", "not a token of this list")
        claims = [] if first["claim_id"] is None else rows
        token = claims[-1]["claim_id"] if claims and claims[-1]["more"] else None
        return ClaimPage(claims, first["name"], first["disconnected_at"], token)

    async def page_of_connection(
        self, partner_id: str, entity_id: str, *, limit: int, after: str | None
    ) -> tuple[list[Row], str | None]:
        """Return claims of one entity, with their streams, and the next page's `after`.

        Refuses with `validation_failed` an `after` that is not the id of one of the partner's.
        """
        place = await self._place(after, partner_id)
        rows = await self._reads.fetch(
            _SQL.page_of_connection, partner_id, entity_id, place, limit + 1
        )
        return _cut(rows, limit)

    async def _place(self, after: str | None, partner_id: str) -> int:
        if after is None:
            return _NEWEST
        last = await self.by_id(after)
        if last is None or last["partner_id"] != partner_id:
            raise invalid("after", "not a place in this list")
        return last["append_id"]

    async def by_id(self, claim_id: str) -> Row | None:
        """Return one claim, whoever's it is."""
        return await self._reads.fetchrow(_SQL.by_id, claim_id)


def _cut(rows: list[Row], limit: int) -> tuple[list[Row], str | None]:
    """Return a page of rows, of which one more was read, and where the next page begins."""
    claims = rows[:limit]
    return claims, claims[-1]["claim_id"] if len(rows) > limit else None
