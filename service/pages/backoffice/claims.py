"""`/backoffice/claims/<id>`: a claim, its stage, and its personal data where it is asked for."""

from typing import Any, Final

from litestar import Response, Router, get, post
from litestar.params import FromPath

from service.core.errors import Refusal
from service.facts.claims import STAGES, Claim
from service.http.bodies import AnyRequest
from service.pages.backoffice.frame import BackofficeContext, staff_cause, staff_of
from service.pages.shell import lead_to
from service.pages.visit import read_form

PATH: Final = "/backoffice/claims/{claim_id:str}"


def claims_router(desk: BackofficeContext) -> Router:
    """Return the router of claims."""

    @get(PATH, opt={"page": "staff"})
    async def one(request: AnyRequest, claim_id: FromPath[str]) -> Response[bytes]:
        await staff_of(request, desk.staff)
        return await _page(request, claim_id)

    @post(f"{PATH}/stage", opt={"page": "staff"})
    async def move(request: AnyRequest, claim_id: FromPath[str]) -> Response[bytes]:
        cause = await staff_cause(request, desk.staff)
        stage = (await read_form(request)).get("stage", "")
        found = await desk.claim(claim_id)
        if found is None:
            return desk.unknown(request, claim_id)
        try:
            await desk.sides[found[0]].claims.move(claim_id, stage, cause)
        except Refusal as refusal:
            if refusal.code != "validation_failed":
                raise
            return await _page(request, claim_id, 400, faults=refusal.field_errors)
        return lead_to(f"/backoffice/claims/{claim_id}")

    @post(f"{PATH}/personal", opt={"page": "staff"})
    async def personal(request: AnyRequest, claim_id: FromPath[str]) -> Response[bytes]:
        """Show it once: the answer is not kept, and another look is asked for, and noted, again."""
        staff_id = await staff_of(request, desk.staff)
        cause = await staff_cause(request, desk.staff)
        await read_form(request)
        found = await desk.claim(claim_id)
        if found is None:
            return desk.unknown(request, claim_id)
        await desk.staff.opened(staff_id, claim_id, cause)  # first, so that no look goes unnoted
        return await _page(request, claim_id, is_open=True)

    async def _page(
        request: AnyRequest, claim_id: str, status: int = 200, **more: object
    ) -> Response[bytes]:
        found = await desk.claim(claim_id)
        if found is None:
            return desk.unknown(request, claim_id)
        mode, row = found
        claim = await desk.sides[mode].claims.show(claim_id)
        names = await desk.accounts.names([row["partner_id"]])
        context = {"is_open": False, "faults": None} | more
        return desk.page(
            request,
            "",
            "claim.html",
            status,
            mode=mode,
            row=row,
            claim=claim,
            partner=names[row["partner_id"]],
            stages=STAGES,
            personal=_personal(claim) if context["is_open"] else [],
            is_erased=claim.created is not None and claim.created.details is None,
            **context,
        )

    return Router("/", route_handlers=[one, move, personal])


def _personal(claim: Claim) -> list[tuple[str, str]]:
    """Return what is sealed of a claim, a line a value: where it stands, and what it says."""
    details: dict[str, Any] = dict((claim.created and claim.created.details) or {})
    if claim.message and claim.message.text:
        details["message"] = claim.message.text
    if claim.attached and claim.attached.filenames:
        details["filenames"] = claim.attached.filenames
    return list(_lines("", details))


def _lines(path: str, value: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - what JSON can hold
    if isinstance(value, dict):
        return [line for name, one in value.items() for line in _lines(f"{path}.{name}", one)]
    if isinstance(value, list):
        return [
            line for number, one in enumerate(value, 1) for line in _lines(f"{path} {number}", one)
        ]
    return [] if value is None else [(path.lstrip(". "), str(value))]
