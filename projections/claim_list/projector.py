"""From facts about claims to the rows that `GET /claims` lists."""

from collections.abc import Iterable

import msgspec

from service.facts.claims import STAGES, ClaimCreated, ClaimStageChanged
from service.ledger.events import Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.sql import queries

_SQL = queries("projections.claim_list")

CLAIM_LIST = Table(
    "claim_list",
    """
    claim_id text, append_id bigint, stream_id uuid, partner_id text, entity_id text,
    partner_claim_id text, partner_user_id text, partner_invoice_ids text, stage text,
    created_at timestamptz
    """,
)


class ClaimListProjector(Projector):
    """Table `claim_list`. It holds nothing personal: an entity's name is joined when it is read."""

    name = "claim_list"
    version = 1
    tables = (CLAIM_LIST,)
    topics = (ClaimCreated, ClaimStageChanged)

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes."""
        match recorded.event:
            case ClaimCreated() as event:
                yield CLAIM_LIST.new(
                    event,
                    append_id=recorded.append_id,
                    stream_id=recorded.stream_id,
                    partner_invoice_ids=msgspec.json.encode(event.partner_invoice_ids).decode(),
                    stage=STAGES[0],
                    created_at=recorded.meta.at,
                )
            case ClaimStageChanged(claim_id=claim_id, stage=stage):
                yield Update(CLAIM_LIST, _SQL.set_stage, (claim_id, stage))
            case _:
                pass
