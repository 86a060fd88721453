"""`/console/{partner_id}/claims`: a partner's own claims, to filter, search, sort and download."""

from collections.abc import Mapping
from typing import Final

from litestar import get
from litestar.response import Stream

from projections.claim_list.partners_claims import ClaimFilter, FoundClaims, PartnersClaims, Sort
from service.claims.overview import ClaimOverviews
from service.core.errors import Refusal
from service.facts.caller import Mode
from service.facts.claims import STAGES
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.csv_file import ROWS_MAX, CsvFiles
from service.pages.console.frame import ACTIVITY, CONSOLE, console_page
from service.pages.console.listing import asked, asked_one_of, mode_of, query_of, sought
from service.pages.site_map import Html, Page, PathText

CLAIMS: Final = {"page": Page("approved", "partner_claims.nav", ACTIVITY)}
PAGE: Final = 50
STEPS_MAX: Final = 100
DOCUMENTS_MAX: Final = 100
SORTS: Final[tuple[Sort, ...]] = ("newest", "oldest", "reference")
_COLUMNS: Final = (
    "claim_id",
    "partner_claim_id",
    "partner_user_id",
    "entity_id",
    "stage",
    "created_at",
)


def claims_router(
    claims: Mapping[Mode, PartnersClaims], cases: Mapping[Mode, ClaimOverviews], files: CsvFiles
) -> OneOffRouter:
    """Return the router of a partner's claims. Nobody's personal data is shown."""

    @get("/claims", opt=CLAIMS)
    async def claim_list(request: AnyRequest, partner_id: PathText) -> Html:
        """List the partner's claims over all entities."""
        mode, wanted, after = mode_of(request), _wanted(request), asked(request, "after")
        found = await claims[mode].page(partner_id, wanted, limit=PAGE, after=after)
        kept = _query(wanted)
        return console_page(
            request,
            "claims.html",
            mode=mode,
            claims=found.claims,
            wanted=wanted,
            stages=STAGES,
            sorts=SORTS,
            kept=query_of(**kept),
            first=query_of(mode=mode, **kept) if after else "",
            older=query_of(mode=mode, **kept, after=found.after) if found.after else "",
            rows_max=ROWS_MAX,
        )

    @get("/claims.csv", opt={"page": Page("approved")})
    async def claims_file(request: AnyRequest, partner_id: PathText) -> Stream:
        """Send the same claims as a file."""
        mode, wanted = mode_of(request), _wanted(request)

        async def page(limit: int, after: str | None) -> FoundClaims:
            return await claims[mode].page(partner_id, wanted, limit=limit, after=after)

        return files.file(partner_id, f"claims-{mode}", _COLUMNS, page)

    @get("/claims/{claim_id:str}", opt=CLAIMS)
    async def claim(request: AnyRequest, partner_id: PathText, claim_id: PathText) -> Html:
        """Show one claim: its stages, its documents, the total of its invoices."""
        mode = mode_of(request)
        row = None if "\0" in claim_id else await claims[mode].one(partner_id, claim_id)
        if row is None:
            raise Refusal("claim_not_found")
        case = await cases[mode].one(row)
        return console_page(
            request,
            "claim.html",
            mode=mode,
            claim=row,
            case=case,
            history=case.history[-STEPS_MAX:],
            documents=case.attachments[:DOCUMENTS_MAX],
        )

    return OneOffRouter(CONSOLE, route_handlers=[claim_list, claims_file, claim])


def _wanted(request: AnyRequest) -> ClaimFilter:
    return ClaimFilter(
        stage=asked_one_of(request, "stage", STAGES),
        sought=sought(request),
        sort=asked_one_of(request, "sort", SORTS) or "newest",
    )


def _query(wanted: ClaimFilter) -> dict[str, str | None]:
    sort = None if wanted.sort == "newest" else wanted.sort
    return {"stage": wanted.stage, "q": wanted.sought, "sort": sort}
