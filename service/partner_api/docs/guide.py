"""The guide for partners: Markdown, filled in from the tables that the code obeys.

It is the description in the OpenAPI document and the first half of the reference page.
"""

from collections.abc import Sequence
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from projections.claim_list.reader import PAGE_BYTES_MAX
from service.claims.wire import PARTNER_INVOICE_IDS_BYTES_MAX, REFERENCES
from service.core.errors import ERRORS
from service.documents.paths import BYTES_MAX, EXTENSIONS, UPLOADS_OF_CLAIM_MAX
from service.facts.claims import STAGES
from service.http.admission import LATE_OF_ONE_MAX
from service.http.bodies import BODY_BYTES_MAX, BODY_SECONDS_MAX
from service.http.decoding import QUERY_BYTES_MAX, QUERY_FIELDS_MAX
from service.http.scalars import LIMITS
from service.partner_api.claims import LIMIT_MAX
from service.partner_api.docs.retries import RETRIED_STATUSES
from service.partner_api.endpoints import Endpoint
from service.sandbox.triggers import PREFIX, TRIGGERS

TEMPLATES: Final = Environment(
    loader=PackageLoader("service.partner_api", "docs"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=False,
)

CHARACTERS: Final = {
    "text": "a string, unless said otherwise",
    "message": "`message`",
    "summary": "an invoice's `summary`",
    "storage_path": "`storage_path`",
    "email": "an email address",
    "moment": "`contract_date`",
    "amount": "`total_amount_for_invoice`",
}
ENTRIES: Final = ("invoices", "partner_invoice_ids", "document_refs")
"""What is limited, for each of LIMITS: to characters, and to entries."""
_REFERENCES: Final = {
    "start_onboarding": "partner_user_id",
    "mint_upload_url": "partner_claim_id",
    "create_claim": "partner_claim_id",
}


def guide(endpoints: Sequence[Endpoint], rate_limit_per_minute: int) -> str:
    """Return the guide as Markdown, sections under `##`."""
    by_id = {endpoint.id: endpoint for endpoint in endpoints}
    return TEMPLATES.get_template("guide.md.j2").render(
        references=", ".join(f"`{name}`" for name in REFERENCES),
        stages=", ".join(f"`{stage}`" for stage in STAGES),
        first_stage=STAGES[0],
        mime_types=", ".join(f"`{mime_type}`" for mime_type in EXTENSIONS),
        retried_statuses=", ".join(map(str, RETRIED_STATUSES)),
        limits=_limits(rate_limit_per_minute),
        triggers=[
            (
                f"{by_id[name].method.upper()} {by_id[name].path}",
                _REFERENCES[name],
                PREFIX + code,
                ERRORS[code].status,
                code,
            )
            for name, codes in TRIGGERS.items()
            for code in codes
        ],
    )


def _limits(rate_limit_per_minute: int) -> list[tuple[str, str]]:
    return [
        ("requests of a partner, over all its keys", f"{rate_limit_per_minute:,} a minute"),
        ("a request's body", f"{BODY_BYTES_MAX:,} bytes"),
        ("a query string", f"{QUERY_BYTES_MAX:,} bytes and {QUERY_FIELDS_MAX} parameters"),
        ("time to send a body", f"{BODY_SECONDS_MAX:.0f} seconds"),
        ("bodies of a partner that take longer than a moment", f"{LATE_OF_ONE_MAX} at once"),
        *((what, f"{LIMITS[name]:,} characters") for name, what in CHARACTERS.items()),
        *((f"`{name}`", f"{LIMITS[name]:,} entries") for name in ENTRIES),
        (
            "all `partner_invoice_ids` of a claim",
            f"{PARTNER_INVOICE_IDS_BYTES_MAX:,} bytes in UTF-8",
        ),
        ("an uploaded file", f"{BYTES_MAX:,} bytes; `max_bytes` may lower it"),
        ("upload URLs for one claim", f"{UPLOADS_OF_CLAIM_MAX:,}, until those unused are removed"),
        ("life of an upload URL", "15 minutes"),
        ("claims of a page", f"{LIMIT_MAX}; 100 unless you say"),
        ("all `partner_invoice_ids` of a page with several claims", f"{PAGE_BYTES_MAX:,} bytes"),
        ("life of a connect link", "1 hour from issue"),
    ]
