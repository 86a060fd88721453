"""The frame of the back office's pages: their context, and the navigation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from projections.claim_documents.reader import ClaimDocumentsReader
from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import ConnectionsReader
from projections.partners.reader import PartnersReader
from service.claims.commands import ClaimCommands
from service.connections.commands import ConnectionCommands
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.ledger.database import Database, Row
from service.ledger.service_keys import ServiceKeyStore
from service.ledger.sql import queries
from service.pages.shell import Frame, framed_page
from service.pages.site_map import Html, Page, site_map_of
from service.partners.commands import PartnerCommands
from service.partners.reviews import PartnerReviews
from service.people.staff import StaffCommands

BACKOFFICE: Final = "/backoffice"
STAFF: Final = {"page": Page("staff")}
"""The options of a page outside the navigation."""

_SQL = queries("service.pages.backoffice")


class IdUnknown(Exception):
    """Nothing has the id that is asked for, the exception's one argument."""


class ModeContext(NamedTuple):
    """What the team reads and does in one mode."""

    database: Database
    connections: ConnectionCommands
    connection_list: ConnectionsReader
    claims: ClaimCommands
    claim_list: ClaimListReader
    documents: ClaimDocumentsReader

    async def entity(self, entity_id: str) -> Row | None:
        """Return one business of this mode."""
        return await self.database.reads.fetchrow(_SQL.entity, entity_id)


@dataclass(frozen=True, slots=True)
class BackofficeContext:
    """What the pages of the back office work with."""

    staff: StaffCommands
    accounts: Database
    partners: PartnerCommands
    reviews: PartnerReviews
    partner_list: PartnersReader
    secrets: ServiceKeyStore
    modes: Mapping[Mode, ModeContext]

    async def entity(self, entity_id: str) -> tuple[Mode, Row]:
        """Return a business and its mode; raise IdUnknown."""
        for mode, of_mode in self.modes.items():
            row = await of_mode.entity(entity_id)
            if row is not None:
                return mode, row
        raise IdUnknown(entity_id)

    async def claim(self, claim_id: str) -> tuple[Mode, Row]:
        """Return a claim's row and its mode; raise IdUnknown."""
        for mode, of_mode in self.modes.items():
            row = await of_mode.claim_list.by_id(claim_id)
            if row is not None:
                return mode, row
        raise IdUnknown(claim_id)

    async def names(self, partner_ids: Iterable[str]) -> Mapping[str, Row]:
        """Return the rows of partners (partner_id, name, status) by their ids."""
        rows = await self.accounts.reads.fetch(_SQL.partner_names, list(partner_ids))
        return {row["partner_id"]: row for row in rows}

    async def counts(self) -> Mapping[str, int]:
        """Return the number of partners by state; a state without any is left out."""
        rows = await self.accounts.reads.fetch(_SQL.partner_counts)
        return {row["status"]: row["partners"] for row in rows}

    async def partner_named(self, partner_id: str) -> Row:
        """Return a partner's row (partner_id, name, status); raise IdUnknown."""
        names = await self.names([partner_id])
        if partner_id not in names:
            raise IdUnknown(partner_id)
        return names[partner_id]


def backoffice_frame(request: AnyRequest) -> Frame | None:
    """Return the navigation of the back office; None for whom the guard did not let in."""
    if "staff_id" not in request.scope["state"]:
        return None
    return Frame("backoffice.nav.label", site_map_of(request).navigation(BACKOFFICE))


def backoffice_page(
    request: AnyRequest, template: str, status: int = 200, **context: object
) -> Html:
    """Return a page of `templates/backoffice/`."""
    frame = backoffice_frame(request)
    assert frame is not None  # noqa: S101 - its guard looks the person up
    return framed_page(request, f"backoffice/{template}", status, frame, **context)


def ledger_place(text: str, most: int) -> int | None:
    """Return a position in a ledger, `most` at the most; None for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return min(int(text), most) if is_number else None


def on_id_unknown(request: AnyRequest, error: IdUnknown) -> Html:
    """Return the page for an id that nothing has."""
    return backoffice_page(request, "unknown.html", 404, an_id=error.args[0])
