"""What `POST /claims` and `GET /claims` take and answer (contract 2.5 to 2.7, 4.5)."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from service.facts.claims import STAGES
from service.http.scalars import (
    LIMITS,
    Amount,
    CalendarDate,
    Checked,
    EmailAddress,
    Message,
    RequiredText,
    Rfc3339,
    StoragePath,
    Summary,
    Text,
    Timestamp,
)


class DefendantAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the defendant is: `town_city` and `county`, unlike an onboarding's address."""

    first_line: Annotated[
        Text | UnsetType, Meta(description="First line.", examples=["1 Example Street"])
    ] = UNSET
    second_line: Annotated[
        Text | UnsetType | None,
        Meta(description="Second line, or null.", examples=["Unit 2", None]),
    ] = UNSET
    town_city: Annotated[
        Text | UnsetType, Meta(description="Town or city.", examples=["London"])
    ] = UNSET
    county: Annotated[
        Text | UnsetType, Meta(description="County.", examples=["Greater London"])
    ] = UNSET
    postcode: Annotated[Text | UnsetType, Meta(description="Postcode.", examples=["AB1 2CD"])] = (
        UNSET
    )
    country: Annotated[Text | UnsetType, Meta(description="Country.", examples=["GB"])] = UNSET


class Defendant(Checked, frozen=True, kw_only=True):
    """Who owes the debt."""

    name: Annotated[RequiredText, Meta(description="Full name.", examples=["Example Ltd"])]
    email: Annotated[
        EmailAddress | UnsetType,
        Meta(
            description="In ASCII: an international domain in its xn-- form.",
            examples=["accounts@example.com"],
        ),
    ] = UNSET
    address: Annotated[DefendantAddress | UnsetType, Meta(description="Postal address.")] = UNSET
    is_consumer: Annotated[
        bool | UnsetType, Meta(description="Owes as a consumer.", examples=[False])
    ] = UNSET
    is_individual: Annotated[
        bool | UnsetType, Meta(description="A person, not a company.", examples=[False])
    ] = UNSET
    company_registration_number: Annotated[
        Text | UnsetType, Meta(description="Number in its register.", examples=["00000000"])
    ] = UNSET


class Invoice(Checked, frozen=True, kw_only=True):
    """An unpaid invoice."""

    number: Annotated[
        Text | UnsetType, Meta(description="Invoice number.", examples=["INV-1001"])
    ] = UNSET
    total_amount_for_invoice: Annotated[
        Amount | UnsetType,
        Meta(description="At most 15 digits, a point, two digits; no sign.", examples=["1250.00"]),
    ] = UNSET
    created_date: Annotated[
        CalendarDate | UnsetType, Meta(description="Day of issue.", examples=["2026-01-05"])
    ] = UNSET
    due_date: Annotated[
        CalendarDate | UnsetType, Meta(description="Day it was due.", examples=["2026-02-04"])
    ] = UNSET
    summary: Annotated[
        Summary | UnsetType, Meta(description="What it is for.", examples=["Web design, January"])
    ] = UNSET


class DocumentRef(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was uploaded before (contract 4.3)."""

    storage_path: Annotated[
        StoragePath,
        Meta(
            description="As answered by POST /documents/upload-url.",
            examples=["entities/ent_example/claims/clk_example/documents/doc_example.pdf"],
        ),
    ]
    mime_type: Annotated[
        RequiredText, Meta(description="As it was uploaded.", examples=["application/pdf"])
    ]
    filename: Annotated[
        RequiredText, Meta(description="Name shown to people.", examples=["invoice.pdf"])
    ]


class ClaimRequest(Checked, frozen=True, kw_only=True):
    """A debt-recovery claim to create (contract 2.5). Unknown fields are ignored."""

    entity_id: Annotated[
        RequiredText,
        Meta(description="Connected entity.", examples=["ent_01jexample00000000000000000"]),
    ]
    partner_claim_id: Annotated[
        RequiredText,
        Meta(
            description="Your stable case reference: the idempotency key within the entity, "
            "compared byte for byte. Put no personal data in it.",
            examples=["case-1001"],
        ),
    ]
    defendant: Annotated[Defendant, Meta(description="Who owes the debt.")]
    invoices: Annotated[
        list[Invoice],
        Meta(
            min_length=1, max_length=LIMITS["invoices"], description="At least one unpaid invoice."
        ),
    ]
    partner_user_id: Annotated[
        Text | UnsetType,
        Meta(
            description="Your user reference, a filter of GET /claims. No personal data.",
            examples=["user-17"],
        ),
    ] = UNSET
    partner_invoice_ids: Annotated[
        Annotated[list[Text], Meta(max_length=LIMITS["partner_invoice_ids"])] | UnsetType,
        Meta(
            description="Your invoice references, echoed by GET /claims. No personal data.",
            examples=[["inv-1", "inv-2"]],
        ),
    ] = UNSET
    message: Annotated[
        Message | UnsetType,
        Meta(
            description="Becomes the first message: background, what the attachments are, "
            "instructions. Empty is as absent.",
            examples=["The work was delivered on time and accepted in writing."],
        ),
    ] = UNSET
    contract_date: Annotated[
        Rfc3339 | UnsetType,
        Meta(
            description="When the contract was made: RFC 3339 with an offset.",
            examples=["2025-11-03T09:00:00.000Z"],
        ),
    ] = UNSET
    is_written: Annotated[
        bool | UnsetType, Meta(description="Whether the contract is written.", examples=[True])
    ] = UNSET
    document_refs: Annotated[
        Annotated[list[DocumentRef], Meta(max_length=LIMITS["document_refs"])] | UnsetType,
        Meta(description="Files uploaded under the same entity and partner_claim_id."),
    ] = UNSET


class ClaimResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of `POST /claims` (contract 2.6)."""

    claim_id: Annotated[
        str,
        Meta(
            description="Id of the claim, the same on every replay.",
            examples=["clm_01jexample00000000000000000"],
        ),
    ]
    message_id: Annotated[
        str | None,
        Meta(
            description="Null when there was no message and no document, and on a replay.",
            examples=["msg_01jexample00000000000000000", None],
        ),
    ]
    document_ids: Annotated[
        list[str],
        Meta(
            description="Ids of the linked documents; empty on a replay.",
            examples=[["doc_01jexample00000000000000000"]],
        ),
    ]
    already_existed: Annotated[bool, Meta(description="True on a replay.", examples=[False])]


class ClaimListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of `GET /claims` (contract 4.5). The caller clamps `limit`."""

    entity_id: Annotated[
        RequiredText,
        Meta(
            description="Entity to list claims for.", examples=["ent_01jexample00000000000000000"]
        ),
    ]
    limit: Annotated[
        int,
        Meta(description="Page size, 1 to 200; a value outside is clamped.", examples=[100]),
    ] = 100
    page_token: Annotated[
        RequiredText | UnsetType,
        Meta(
            description="`next_page_token` of the previous page.",
            examples=["clm_01jexample00000000000000000"],
        ),
    ] = UNSET
    partner_user_id: Annotated[
        Text | UnsetType,
        Meta(description="Only claims with this user reference.", examples=["user-17"]),
    ] = UNSET


class ClaimListItem(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the list (contract 2.7)."""

    claim_id: Annotated[
        str, Meta(description="Id of the claim.", examples=["clm_01jexample00000000000000000"])
    ]
    entity_id: Annotated[
        str, Meta(description="The entity asked for.", examples=["ent_01jexample00000000000000000"])
    ]
    partner_user_id: Annotated[
        str | None, Meta(description="Null when none was given.", examples=["user-17", None])
    ]
    partner_claim_id: Annotated[
        str, Meta(description="Your case reference.", examples=["case-1001"])
    ]
    partner_invoice_ids: Annotated[
        list[str],
        Meta(description="Your invoice references, none: empty.", examples=[["inv-1", "inv-2"]]),
    ]
    name: Annotated[
        str,
        Meta(
            description="The connected entity, not the defendant.", examples=["Example Trading Ltd"]
        ),
    ]
    stage: Annotated[
        str,
        Meta(
            description="Processing stage.",
            examples=[STAGES[0]],
            extra_json_schema={"enum": list(STAGES)},
        ),
    ]
    created_at: Annotated[
        Timestamp, Meta(description="When it was created.", examples=["2026-03-01T10:15:30.123Z"])
    ]
    entity_disconnected: Annotated[
        bool, Meta(description="The entity has disconnected you.", examples=[False])
    ]
    entity_disconnected_at: Annotated[
        Timestamp | None, Meta(description="Null while connected.", examples=[None])
    ]


class ClaimList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of claims, newest first (contract 2.7)."""

    claims: Annotated[list[ClaimListItem], Meta(description="The claims of this page.")]
    next_page_token: Annotated[
        str | None,
        Meta(
            description="The next request's `page_token`; null: no more pages.",
            examples=["clm_01jexample00000000000000000", None],
        ),
    ]
    entity_disconnected: Annotated[
        bool, Meta(description="The entity has disconnected you.", examples=[False])
    ]
    entity_disconnected_at: Annotated[
        Timestamp | None, Meta(description="Null while connected.", examples=[None])
    ]
