"""One partner's claims over all its entities: the console's list, its file, and how many there are.

Each way to ask is along an index, so that a page costs the same however many claims there are.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from service.core.errors import invalid
from service.ledger.database import Reader, Row
from service.ledger.sql import Sql, queries

_SQL = queries("projections.claim_list")

COUNTED_MAX: Final = 10_000
"""Claims of one stage that are counted."""
LOOKED_MAX: Final = 1_000
"""Claims that a page looks at where it shows one stage of what is sought."""

_NEWEST: Final = 2**63 - 1

Sort = Literal["newest", "oldest", "reference"]


class ClaimFilter(NamedTuple):
    """Which claims: in a stage; one by its id, an entity's, or those whose reference begins so.

    None is any. References that are sought come in their own order.
    """

    stage: str | None = None
    sought: str | None = None
    sort: Sort = "newest"


class FoundClaims(NamedTuple):
    """A page, and the claim after which the next one begins, None at the end."""

    claims: Sequence[Row]
    after: str | None


class PartnersClaims(Reader):
    """Reads `claim_list` of one ledger for the partner whose claims they are."""

    async def counts(self, partner_id: str, stages: Sequence[str]) -> Mapping[str, int]:
        """Return the number of claims by stage, COUNTED_MAX of each at most."""
        rows = await self._reads.fetch(_SQL.count_by_stage, partner_id, list(stages), COUNTED_MAX)
        return {row["stage"]: row["claims"] for row in rows}

    async def one(self, partner_id: str, claim_id: str) -> Row | None:
        """Return one of the partner's claims, or None."""
        row = await self._reads.fetchrow(_SQL.by_id, claim_id)
        return row if row is not None and row["partner_id"] == partner_id else None

    async def page(
        self, partner_id: str, wanted: ClaimFilter, *, limit: int, after: str | None
    ) -> FoundClaims:
        """Return up to `limit` claims from after one on; fewer where few are in a wanted stage.

        Refuses with `validation_failed` an `after` that is not the id of a claim of theirs.
        """
        last = None if after is None else await self.one(partner_id, after)
        if after is not None and last is None:
            raise invalid("after", "not a place in this list")
        if wanted.sought and wanted.sought.startswith("clm_"):
            found = await self.one(partner_id, wanted.sought)
            return _cut([found] if found else [], wanted, limit, limit)
        looks = LOOKED_MAX if _looks_on(wanted) else limit
        rows = await self._read(partner_id, wanted, last, looks + 1)
        return _cut(rows, wanted, looks, limit)

    async def _read(
        self, partner_id: str, wanted: ClaimFilter, last: Row | None, limit: int
    ) -> list[Row]:
        if _by_reference(wanted):
            begins = wanted.sought or ""
            # The index is entered at the place; a first page has that of the first text that fits.
            place, reference = (-1, begins) if last is None else _place_of(last)
            given = (partner_id, place, limit, begins, reference)
            return await self._reads.fetch(_SQL.page_of_partner_references, *given)
        oldest = wanted.sort == "oldest"
        place = (-1 if oldest else _NEWEST) if last is None else last["append_id"]
        statement, more = _statement(wanted, oldest=oldest)
        return await self._reads.fetch(statement, partner_id, place, limit, *more)


def _by_reference(wanted: ClaimFilter) -> bool:
    of_entity = wanted.sought is not None and wanted.sought.startswith("ent_")
    return not of_entity and (wanted.sought is not None or wanted.sort == "reference")


def _looks_on(wanted: ClaimFilter) -> bool:
    """Return whether a page has to look at claims that it does not show."""
    return wanted.stage is not None and (wanted.sought is not None or wanted.sort == "reference")


def _place_of(last: Row) -> tuple[int, str]:
    return last["append_id"], last["partner_claim_id"]


def _statement(wanted: ClaimFilter, *, oldest: bool) -> tuple[Sql, tuple[str, ...]]:
    if wanted.sought is not None:
        named = _SQL.page_of_partner_entity_oldest if oldest else _SQL.page_of_partner_entity
        return named, (wanted.sought,)
    if wanted.stage is not None:
        named = _SQL.page_of_partner_stage_oldest if oldest else _SQL.page_of_partner_stage
        return named, (wanted.stage,)
    return (_SQL.page_of_partner_oldest if oldest else _SQL.page_of_partner), ()


def _cut(rows: Sequence[Row], wanted: ClaimFilter, looks: int, limit: int) -> FoundClaims:
    """Return the page among rows, of which one more than `looks` was read."""
    looked = rows[:looks]
    shown = [row for row in looked if wanted.stage in {None, row["stage"]}]
    if len(shown) > limit:
        return FoundClaims(shown[:limit], shown[limit - 1]["claim_id"])
    return FoundClaims(shown, looked[-1]["claim_id"] if len(rows) > looks else None)
