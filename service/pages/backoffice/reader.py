"""The back office's queries: by any id, by an address, and a business with all it has."""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from service.core.ids import CROCKFORD
from service.ledger.codec import stored_form
from service.ledger.database import Database, Row
from service.ledger.sql import queries

PARTNERS_PAGE: Final = 50
CLAIMS_PAGE: Final = 50
PERSON_DIGITS: Final = 26

_SQL = queries("service.pages.backoffice")


def person_bits(person_id: str) -> bytes | None:
    """Return the 128 bits of a person id, `per_` and 26 characters; None for what is none."""
    prefix, _, digits = person_id.partition("_")
    value = 0
    if prefix != "per" or len(digits) != PERSON_DIGITS or not set(digits) <= set(CROCKFORD):
        return None
    for digit in digits:
        value = value << 5 | CROCKFORD.index(digit)
    return value.to_bytes(17, "big")[1:]


class AccountsLookUp:
    """Looks things up in the ledger of accounts."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger of accounts."""
        self._database = database

    async def partners(self, status: str, after: str | None) -> tuple[list[Row], str | None]:
        """Return a page of the partners in a state, and where the next page begins if there is."""
        rows = await self._database.fetch(_SQL.partners_page, status, after, PARTNERS_PAGE + 1)
        shown = rows[:PARTNERS_PAGE]
        return shown, shown[-1]["partner_id"] if len(rows) > PARTNERS_PAGE else None

    async def counts(self) -> dict[str, int]:
        """Return how many partners are in each state that any is in."""
        rows = await self._database.fetch(_SQL.partner_counts)
        return {row["status"]: row["partners"] for row in rows}

    async def names(self, partner_ids: Iterable[str]) -> Mapping[str, Row]:
        """Return the rows of partners (name, status) by their ids."""
        rows = await self._database.fetch(_SQL.partner_names, list(partner_ids))
        return {row["partner_id"]: row for row in rows}

    async def by_id(self, an_id: str) -> list[Row]:
        """Return what an id is: partner, key, member or staff."""
        return await self._database.fetch(_SQL.accounts_by_id, an_id)

    async def by_address(self, email: str, address_hash: str) -> list[Row]:
        """Return who has or had an email address: a partner's contact, a member, the team."""
        return await self._database.fetch(
            _SQL.accounts_by_address, email, bytes.fromhex(address_hash)
        )

    async def by_person(self, bits: bytes) -> list[Row]:
        """Return who of partners' teams and of ours has a person id, given as `person_bits`."""
        return await self._database.fetch(_SQL.accounts_by_person, bits)


class LedgerLookUp:
    """Looks things up in the ledger live or test."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger live or test."""
        self._database = database

    async def by_id(self, an_id: str) -> list[Row]:
        """Return what an id is: claim, entity, onboarding, link, document or request."""
        return await self._database.fetch(_SQL.ledger_by_id, an_id)

    async def by_address(self, address_hash: str) -> list[Row]:
        """Return the businesses that have an e-mail address."""
        return await self._database.fetch(_SQL.ledger_by_address, bytes.fromhex(address_hash))

    async def by_person(self, bits: bytes) -> list[Row]:
        """Return the businesses of a person by their id, given as `person_bits`."""
        return await self._database.fetch(_SQL.ledger_by_person, bits)

    async def actor(self, stream: UUID, version: int) -> str | None:
        """Return the actor of an event; None where there is no such event."""
        row = await self._database.fetchrow(_SQL.connection_event, stream, version)
        return None if row is None else stored_form(row["state"]).meta.actor

    async def entity(self, entity_id: str) -> Row | None:
        """Return one business."""
        return await self._database.fetchrow(_SQL.entity, entity_id)

    async def onboardings(self, entity_id: str) -> list[Row]:
        """Return the onboardings that brought a business."""
        return await self._database.fetch(_SQL.entity_onboardings, entity_id)

    async def claims(self, entity_id: str, before: int | None) -> tuple[list[Row], int | None]:
        """Return a page of a business's claims, and where the next one begins if there is."""
        rows = await self._database.fetch(_SQL.entity_claims, entity_id, before, CLAIMS_PAGE + 1)
        shown = rows[:CLAIMS_PAGE]
        return shown, shown[-1]["append_id"] if len(rows) > CLAIMS_PAGE else None
