"""What every page of the back office stands in: who may see it, as whom they act, where to go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from litestar import Response

from projections.claim_list.reader import ClaimListReader
from projections.connections.reader import ConnectionsReader
from projections.partners.reader import PartnersReader
from service.claims.commands import ClaimCommands
from service.connections.commands import ConnectionCommands
from service.core.errors import Refusal
from service.facts.caller import Mode
from service.http.bodies import AnyRequest
from service.ledger.database import Row
from service.ledger.events import Cause
from service.ledger.service_keys import ServiceKeyStore
from service.pages.backoffice.reader import AccountsLookUp, LedgerLookUp
from service.pages.shell import page
from service.pages.visit import signed_in
from service.partners.commands import PartnerCommands
from service.people.staff import StaffCommands

NAVIGATION: Final = (
    ("/backoffice", "backoffice.nav.search"),
    ("/backoffice/partners", "backoffice.nav.partners"),
    ("/backoffice/health", "backoffice.nav.health"),
)
"""The back office's places, in this order: path and text."""


class ModeContext(NamedTuple):
    """What the team reads and does in one mode."""

    look_up: LedgerLookUp
    connections: ConnectionCommands
    connection_list: ConnectionsReader
    claims: ClaimCommands
    claim_list: ClaimListReader


@dataclass(frozen=True)
class BackofficeContext:
    """What the pages of the back office work with."""

    staff: StaffCommands
    accounts: AccountsLookUp
    partners: PartnerCommands
    partner_list: PartnersReader
    secrets: ServiceKeyStore
    sides: Mapping[Mode, ModeContext]

    def page(
        self, request: AnyRequest, here: str, template: str, status: int = 200, **context: object
    ) -> Response[bytes]:
        """Return a page that extends `backoffice/layout.html`; `here` is its place."""
        return page(
            request,
            f"backoffice/{template}",
            status,
            (),
            here=here,
            navigation=NAVIGATION,
            **context,
        )

    def unknown(self, request: AnyRequest, an_id: str) -> Response[bytes]:
        """Return that nothing has this id."""
        return self.page(request, "", "unknown.html", 404, an_id=an_id)

    async def entity(self, entity_id: str) -> tuple[Mode, Row] | None:
        """Return a business and the mode it is in; an id is in one of them at the most."""
        for mode, side in self.sides.items():
            row = await side.look_up.entity(entity_id)
            if row is not None:
                return mode, row
        return None

    async def claim(self, claim_id: str) -> tuple[Mode, Row] | None:
        """Return a claim's row and the mode it is in."""
        for mode, side in self.sides.items():
            row = await side.claim_list.by_id(claim_id)
            if row is not None:
                return mode, row
        return None


async def staff_of(request: AnyRequest, staff: StaffCommands) -> str:
    """Return the staff id of who asks; raises SignInNeeded, refuses others with `not_staff`.

    Asked anew with every request: whoever was removed from the team can do nothing any more.
    """
    row = await staff.by_address(signed_in(request).address_hash)
    if row is None:
        raise Refusal("not_staff")
    return row["staff_id"]


async def staff_cause(request: AnyRequest, staff: StaffCommands) -> Cause:
    """Return the cause that the team's events name (decision 8); refuses as `staff_of` does."""
    staff_id = await staff_of(request, staff)
    return Cause(f"staff:{staff_id}", request.scope["state"]["request_id"])
