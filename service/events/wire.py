"""What `GET /v1/events` accepts and returns; an event is the same in a webhook."""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from projections.partner_events.projector import TYPES
from service.facts.claims import STAGES
from service.http.scalars import OPEN_ENUM, RequiredText, Timestamp, described

LIMIT_MAX: Final = 200
CURSOR_EXAMPLE: Final = "evc_AAAAAAAAACqWDQ7v1Y3m0bFh5wQ2e8Kx"
TEST_EVENT: Final = "endpoint.test"
"""The type of the event that a partner sends to an endpoint of its own, to try it."""

_Stage = Annotated[str, Meta(extra_json_schema={OPEN_ENUM: list(STAGES)})]


class EventData(msgspec.Struct, frozen=True, kw_only=True):
    """What an event is about: ids and stages, nothing personal. What does not apply is null."""

    claim_id: Annotated[
        str | None, described("The claim.", "clm_01jexample00000000000000000", None)
    ] = None
    entity_id: Annotated[
        str | None,
        described(
            "The entity. Null until you have created a claim with this id: the customer passes it "
            "on to you.",
            "ent_01jexample00000000000000000",
            None,
        ),
    ] = None
    partner_claim_id: Annotated[
        str | None, described("Your reference of the claim.", "case-1001", None)
    ] = None
    partner_user_id: Annotated[
        str | None,
        described(
            "Your user reference: of the claim, or of the onboarding or connect link that brought "
            "the entity.",
            "user-17",
            None,
        ),
    ] = None
    stage: Annotated[
        _Stage | None,
        described("The claim's stage from now on. There may be new ones.", STAGES[2], None),
    ] = None
    previous_stage: Annotated[
        _Stage | None, described("The stage that the claim left.", STAGES[0], None)
    ] = None
    document_id: Annotated[
        str | None, described("The document.", None, "doc_01jexample00000000000000000")
    ] = None
    onboarding_id: Annotated[
        str | None,
        described(
            "The onboarding; of a connection, the one that connected the entity last, unless a "
            "link did.",
            None,
            "onb_01jexample00000000000000000",
        ),
    ] = None
    link_id: Annotated[
        str | None,
        described(
            "The connect link; of a connection, the one that connected the entity last, unless an "
            "onboarding did.",
            None,
            "lnk_01jexample00000000000000000",
        ),
    ] = None


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened, in the form of CloudEvents 1.0 (structured JSON)."""

    specversion: Annotated[str, described("The version of CloudEvents.", "1.0")] = "1.0"
    id: Annotated[
        str,
        described(
            "The same for ever, however often you get it.", "evt_01jexample00000000000000000"
        ),
    ]
    source: Annotated[
        str,
        described(
            "The API's address; that of test mode ends in `?mode=test`.",
            "https://api.example.com/v1",
        ),
    ]
    type: Annotated[
        str,
        described(
            "What happened. There may be new types: pass over those that you do not know.",
            "claim.stage_changed",
            extra_json_schema={OPEN_ENUM: [*TYPES.values(), TEST_EVENT]},
        ),
    ]
    subject: Annotated[
        str | UnsetType,
        described(
            "The id of the claim, onboarding or connect link that it is about; of `endpoint.test`, "
            "the endpoint's. Absent where neither an onboarding nor a link connected the entity.",
            "clm_01jexample00000000000000000",
        ),
    ] = UNSET
    time: Annotated[Timestamp, described("When it happened.", "2026-03-01T10:15:30.123Z")]
    datacontenttype: Annotated[str, described("The form of `data`.", "application/json")] = (
        "application/json"
    )
    sequence: Annotated[
        str,
        described(
            "Its position in the ledger, as receipts and exports name it: a whole number, greater "
            "in each later event. Of `endpoint.test`, which is in no ledger, it is 0.",
            "42",
        ),
    ]
    data: Annotated[EventData, described("What it is about.")]


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of `GET /v1/events`. The caller clamps `limit`."""

    after: Annotated[
        RequiredText | UnsetType,
        described(
            "`next_cursor` of the answer before; without it, from the first event on.",
            CURSOR_EXAMPLE,
        ),
    ] = UNSET
    limit: Annotated[
        int, described(f"Page size, 1 to {LIMIT_MAX}; a value outside is clamped.", 100)
    ] = 100


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Events in the ledger's order."""

    events: Annotated[list[CloudEvent], described("The events of this page, oldest first.")]
    next_cursor: Annotated[
        str,
        described(
            "The next request's `after`, never null: ask again with it for what comes later.",
            CURSOR_EXAMPLE,
        ),
    ]
