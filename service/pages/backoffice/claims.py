"""`/backoffice/claims/<id>`: a claim, its stage, and its personal data on request."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from litestar import get, post

from service.core.errors import Refusal
from service.facts.claims import STAGES, Claim, DocumentFlagged
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.backoffice.frame import STAFF, BackofficeContext, backoffice_page
from service.pages.gate import staff_cause, staff_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, PathText
from service.pages.visit import SEEN_FIELD, form_of
from service.pages.words import text


def claims_router(context: BackofficeContext) -> OneOffRouter:
    """Return the router of claims."""

    @get(opt=STAFF)
    async def claim(request: AnyRequest, claim_id: PathText) -> Html:
        """Show a claim without its personal data."""
        return await shown(request, claim_id)

    @post("/stage", opt=STAFF)
    async def move(request: AnyRequest, claim_id: PathText) -> Html:
        """Move a claim to a stage."""
        form = form_of(request)
        stage, seen = form.get("stage", ""), form.get(SEEN_FIELD, "")
        mode, _ = await context.claim(claim_id)
        try:
            await context.modes[mode].claims.move(claim_id, stage, staff_cause(request), seen)
        except Refusal as refusal:
            if refusal.code == "form_outdated":
                faults = {"stage": [text("backoffice.claim.outdated")]}
                return await shown(request, claim_id, 409, faults=faults)
            if refusal.code != "validation_failed":
                raise
            return await shown(request, claim_id, 400, faults=refusal.field_errors)
        return lead_to(f"/backoffice/claims/{claim_id}")

    @post("/personal", opt=STAFF)
    async def personal(request: AnyRequest, claim_id: PathText) -> Html:
        """Show a claim's personal data once, and record that."""
        await context.claim(claim_id)
        # Recorded first, so that personal data is never shown unrecorded.
        await context.staff.opened(staff_of(request), claim_id, staff_cause(request))
        return await shown(request, claim_id, is_open=True)

    async def shown(
        request: AnyRequest,
        claim_id: str,
        status: int = 200,
        *,
        is_open: bool = False,
        faults: object = None,
    ) -> Html:
        mode, row = await context.claim(claim_id)
        claim = await context.modes[mode].claims.show(claim_id)
        return backoffice_page(
            request,
            "claim.html",
            status,
            mode=mode,
            row=row,
            claim=claim,
            flags=_flags(claim),
            partner=await context.partner_named(row["partner_id"]),
            stages=STAGES,
            personal=list(_personal(claim)) if is_open else [],
            is_open=is_open,
            faults=faults,
        )

    return OneOffRouter("/claims/{claim_id:str}", route_handlers=[claim, move, personal])


def _flags(claim: Claim) -> Mapping[str, Sequence[DocumentFlagged]]:
    """Return what checks found in each of a claim's documents."""
    flags: dict[str, list[DocumentFlagged]] = defaultdict(list)
    for one in claim.flags:
        flags[one.document_id].append(one)
    return flags


def _personal(claim: Claim) -> Iterator[tuple[str, str]]:
    """Yield the personal data of a claim as pairs of a path and a value."""
    details: dict[str, Any] = dict((claim.created and claim.created.details) or {})
    if claim.message and claim.message.text:
        details["message"] = claim.message.text
    if claim.attached and claim.attached.filenames:
        details["filenames"] = claim.attached.filenames
    return _lines("", details)


def _lines(path: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _lines(f"{path}.{name}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value, 1):
            yield from _lines(f"{path} {number}", inner)
    elif value is not None:
        yield path.lstrip(". "), str(value)
