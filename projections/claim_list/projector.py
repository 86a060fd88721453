"""From facts about claims to the rows that `GET /claims` lists."""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from service.facts.claims import STAGES, ClaimCreated, ClaimStageChanged
from service.ledger.events import Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.claim_list")


class ClaimListProjector:
    """Table `claim_list`. It holds nothing personal: an entity's name is joined when it is read."""

    name = "claim_list"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("claim_list",)
    topics: ClassVar[tuple[type[Event], ...]] = (ClaimCreated, ClaimStageChanged)
    reads_personal = False

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case ClaimCreated() as event:
                yield Write(
                    _SQL.insert,
                    (
                        event.claim_id,
                        recorded.append_id,
                        recorded.stream_id,
                        event.partner_id,
                        event.entity_id,
                        event.partner_claim_id,
                        event.partner_user_id,
                        msgspec.json.encode(event.partner_invoice_ids).decode(),
                        STAGES[0],
                        recorded.meta.at,
                    ),
                )
            case ClaimStageChanged(claim_id=claim_id, stage=stage):
                yield Write(_SQL.set_stage, (claim_id, stage))
            case _:
                pass
