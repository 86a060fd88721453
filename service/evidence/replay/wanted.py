"""What a replay is asked to show, and which events can affect that."""

from typing import Final, NamedTuple

from service.facts.claims import (
    ClaimCreated,
    ClaimStageChanged,
    DocumentFlagged,
    DocumentsAttached,
)
from service.ledger.events import Event


class Wanted(NamedTuple):
    """What to show: everything, or what concerns one of these ids."""

    claim_id: str | None = None
    entity_id: str | None = None
    partner_id: str | None = None

    def needs(self, event: Event) -> bool:
        """Return whether an event can make, or change, a row that is shown.

        Nearly all events are about claims, and rows of other claims are never shown. Everything
        else is needed: which entities and links belong to a claim is known once all are there.
        """
        match event:
            case ClaimCreated():
                return (
                    self.claim_id in {None, event.claim_id}
                    and self.entity_id in {None, event.entity_id}
                    and self.partner_id in {None, event.partner_id}
                )
            case ClaimStageChanged() | DocumentsAttached() | DocumentFlagged():
                return self.claim_id in {None, event.claim_id}
            case _:
                return True


EVERYTHING: Final = Wanted()
