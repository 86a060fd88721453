"""What `POST /claims` and `GET /claims` accept and return (contract 2.5 to 2.7, 4.5)."""

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from service.facts.claims import STAGES, ClaimCreated
from service.http.scalars import (
    LIMITS,
    OPEN_ENUM,
    UNIQUE,
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
    described,
)

PARTNER_INVOICE_IDS_BYTES_MAX: Final = 64 * 1024
"""Of a new claim's `partner_invoice_ids` together, in UTF-8: a list of claims echoes them all.

It is part of the decision (service/claims/decisions.py), not of decoding: a claim that was created
with more is still replayed.
"""


class DefendantAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the defendant is: `town_city` and `county`, unlike an onboarding's address."""

    first_line: Annotated[Text | UnsetType, described("First line.", "1 Example Street")] = UNSET
    second_line: Annotated[
        Text | UnsetType | None, described("Second line, or null.", "Unit 2", None)
    ] = UNSET
    town_city: Annotated[Text | UnsetType, described("Town or city.", "London")] = UNSET
    county: Annotated[Text | UnsetType, described("County.", "Greater London")] = UNSET
    postcode: Annotated[Text | UnsetType, described("Postcode.", "AB1 2CD")] = UNSET
    country: Annotated[Text | UnsetType, described("Country.", "GB")] = UNSET


class Defendant(Checked, frozen=True, kw_only=True):
    """Who owes the debt."""

    name: Annotated[RequiredText, described("Full name.", "Example Ltd")]
    email: Annotated[
        EmailAddress | UnsetType,
        described("In ASCII: an international domain in its xn-- form.", "accounts@example.com"),
    ] = UNSET
    address: Annotated[DefendantAddress | UnsetType, described("Postal address.")] = UNSET
    is_consumer: Annotated[bool | UnsetType, described("Owes as a consumer.", False)] = UNSET
    is_individual: Annotated[bool | UnsetType, described("A person, not a company.", False)] = UNSET
    company_registration_number: Annotated[
        Text | UnsetType, described("Number in its register.", "00000000")
    ] = UNSET


class Invoice(Checked, frozen=True, kw_only=True):
    """An unpaid invoice."""

    number: Annotated[Text | UnsetType, described("Invoice number.", "INV-1001")] = UNSET
    total_amount_for_invoice: Annotated[
        Amount | UnsetType, described("At most 15 digits, a point, two digits; no sign.", "1250.00")
    ] = UNSET
    created_date: Annotated[CalendarDate | UnsetType, described("Day of issue.", "2026-01-05")] = (
        UNSET
    )
    due_date: Annotated[CalendarDate | UnsetType, described("Day it was due.", "2026-02-04")] = (
        UNSET
    )
    summary: Annotated[Summary | UnsetType, described("What it is for.", "Web design, January")] = (
        UNSET
    )


class DocumentRef(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was uploaded before (contract 4.3)."""

    storage_path: Annotated[
        StoragePath,
        described(
            "As answered by POST /documents/upload-url.",
            "entities/ent_example/claims/clk_example/documents/doc_example.pdf",
            extra=UNIQUE,
        ),
    ]
    mime_type: Annotated[RequiredText, described("As it was uploaded.", "application/pdf")]
    filename: Annotated[RequiredText, described("Name shown to people.", "invoice.pdf")]


class ClaimRequest(Checked, frozen=True, kw_only=True):
    """A debt-recovery claim to create (contract 2.5). Unknown fields are ignored."""

    entity_id: Annotated[
        RequiredText, described("Connected entity.", "ent_01jexample00000000000000000")
    ]
    partner_claim_id: Annotated[
        RequiredText,
        described(
            "Your stable case reference: the idempotency key within the entity, "
            "compared byte for byte. Put no personal data in it.",
            "case-1001",
        ),
    ]
    defendant: Annotated[Defendant, described("Who owes the debt.")]
    invoices: Annotated[
        list[Invoice],
        described("At least one unpaid invoice.", min_length=1, max_length=LIMITS["invoices"]),
    ]
    partner_user_id: Annotated[
        Text | UnsetType,
        described("Your user reference, a filter of GET /claims. No personal data.", "user-17"),
    ] = UNSET
    partner_invoice_ids: Annotated[
        Annotated[list[Text], Meta(max_length=LIMITS["partner_invoice_ids"])] | UnsetType,
        described(
            "Your invoice references, echoed by GET /claims: together at most "
            f"{PARTNER_INVOICE_IDS_BYTES_MAX} bytes in UTF-8. No personal data.",
            ["inv-1", "inv-2"],
        ),
    ] = UNSET
    message: Annotated[
        Message | UnsetType,
        described(
            "Becomes the first message: background, what the attachments are, "
            "instructions. An empty one creates no message; a repeat without it is another body.",
            "The work was delivered on time and accepted in writing.",
        ),
    ] = UNSET
    contract_date: Annotated[
        Rfc3339 | UnsetType,
        described(
            "When the contract was made: RFC 3339 with an offset.", "2025-11-03T09:00:00.000Z"
        ),
    ] = UNSET
    is_written: Annotated[bool | UnsetType, described("Whether the contract is written.", True)] = (
        UNSET
    )
    document_refs: Annotated[
        Annotated[list[DocumentRef], Meta(max_length=LIMITS["document_refs"])] | UnsetType,
        described("Files uploaded under the same entity and partner_claim_id."),
    ] = UNSET


REFERENCES: Final = tuple(
    name
    for name in ClaimRequest.__struct_fields__
    if name in ClaimCreated.__struct_fields__ and name not in {"entity_id", *ClaimCreated.personal}
)
"""The partner's own fields of a claim, which its event has in the clear."""


class ClaimResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of `POST /claims` (contract 2.6)."""

    claim_id: Annotated[
        str,
        described("Id of the claim, the same on every replay.", "clm_01jexample00000000000000000"),
    ]
    message_id: Annotated[
        str | None,
        described(
            "Null when there was no message and no document, and on a replay.",
            "msg_01jexample00000000000000000",
            None,
        ),
    ]
    document_ids: Annotated[
        list[str],
        described(
            "Ids of the linked documents; empty on a replay.", ["doc_01jexample00000000000000000"]
        ),
    ]
    already_existed: Annotated[bool, described("True on a replay.", False)]


class ClaimListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of `GET /claims` (contract 4.5). The caller clamps `limit`."""

    entity_id: Annotated[
        RequiredText, described("Entity to list claims for.", "ent_01jexample00000000000000000")
    ]
    limit: Annotated[int, described("Page size, 1 to 200; a value outside is clamped.", 100)] = 100
    page_token: Annotated[
        RequiredText | UnsetType,
        described("`next_page_token` of the previous page.", "clm_01jexample00000000000000000"),
    ] = UNSET
    partner_user_id: Annotated[
        Text | UnsetType, described("Only claims with this user reference.", "user-17")
    ] = UNSET


class ClaimListItem(msgspec.Struct, frozen=True, kw_only=True):
    """A claim of the list (contract 2.7)."""

    claim_id: Annotated[str, described("Id of the claim.", "clm_01jexample00000000000000000")]
    entity_id: Annotated[str, described("The entity asked for.", "ent_01jexample00000000000000000")]
    partner_user_id: Annotated[str | None, described("Null when none was given.", "user-17", None)]
    partner_claim_id: Annotated[str, described("Your case reference.", "case-1001")]
    partner_invoice_ids: Annotated[
        list[str], described("Your invoice references, none: empty.", ["inv-1", "inv-2"])
    ]
    name: Annotated[
        str, described("The connected entity, not the defendant.", "Example Trading Ltd")
    ]
    stage: Annotated[
        str, described("Processing stage.", STAGES[0], extra_json_schema={OPEN_ENUM: list(STAGES)})
    ]
    created_at: Annotated[Timestamp, described("When it was created.", "2026-03-01T10:15:30.123Z")]
    entity_disconnected: Annotated[bool, described("The entity has disconnected you.", False)]
    entity_disconnected_at: Annotated[Timestamp | None, described("Null while connected.", None)]


CLAIM_ID: Final = "^clm_[0-9a-z]{1,60}$"


class ClaimInPath(msgspec.Struct, frozen=True, kw_only=True):
    """What the path of `GET /claims/{claim_id}` names."""

    claim_id: Annotated[
        str,
        described("Id of a claim of yours.", "clm_01jexample00000000000000000", pattern=CLAIM_ID),
    ]


class StageReached(msgspec.Struct, frozen=True, kw_only=True):
    """A stage that a claim came to."""

    stage: Annotated[
        str, described("The stage.", STAGES[0], extra_json_schema={OPEN_ENUM: list(STAGES)})
    ]
    since: Annotated[Timestamp, described("When it came to it.", "2026-03-01T10:15:30.123Z")]


class ClaimDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was linked to a claim."""

    document_id: Annotated[str, described("Id of the document.", "doc_01jexample00000000000000000")]
    filename: Annotated[
        str | None,
        described("The name that you gave; null once it was erased.", "invoice.pdf", None),
    ]
    mime_type: Annotated[str, described("As it was uploaded.", "application/pdf")]
    size: Annotated[int, described("In bytes.", 48213)]
    status: Annotated[
        str,
        described(
            "`flagged`: its content is not what was declared, or was found to be malicious; a "
            "person looks at it.",
            "linked",
            extra_json_schema={OPEN_ENUM: ["linked", "flagged"]},
        ),
    ]


class InvoiceTotals(msgspec.Struct, frozen=True, kw_only=True):
    """A claim's invoices together."""

    count: Annotated[int, described("How many there are.", 2)]
    total: Annotated[
        str,
        described(
            "The sum of `total_amount_for_invoice` of those that have one: decimal, two digits.",
            "2500.00",
        ),
    ]


class ClaimDetail(ClaimListItem, frozen=True, kw_only=True):
    """A claim: what the list has of it, its history, its documents and its invoices' total."""

    history: Annotated[list[StageReached], described("The stages that it came to, oldest first.")]
    documents: Annotated[list[ClaimDocument], described("Its documents, in your order.")]
    invoices: Annotated[
        InvoiceTotals | None, described("Null once the claim's personal data was erased.")
    ]


class ClaimList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of claims, newest first (contract 2.7)."""

    claims: Annotated[list[ClaimListItem], described("The claims of this page.")]
    next_page_token: Annotated[
        str | None,
        described(
            "The next request's `page_token`; null: no more pages.",
            "clm_01jexample00000000000000000",
            None,
        ),
    ]
    entity_disconnected: Annotated[bool, described("The entity has disconnected you.", False)]
    entity_disconnected_at: Annotated[Timestamp | None, described("Null while connected.", None)]
