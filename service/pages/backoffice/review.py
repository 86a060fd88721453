"""`/backoffice/partners/<id>/review`: what the team looked at of a partner, and its decision."""

from collections.abc import Awaitable

from litestar import post

from service.core.errors import Refusal
from service.core.invisible_characters import unseen_fault
from service.facts.reviews import CHECKS
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.pages.backoffice.frame import BackofficeContext
from service.pages.backoffice.partners import PARTNERS, RefusedWebsite, Sent, partner_page
from service.pages.gate import staff_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to, messages_of
from service.pages.site_map import Html, PathText
from service.pages.visit import expected_version, form_of
from service.partners.wire import WORDS_CHARACTERS_MAX, PartnerApproval, PartnerNote, website_of


def review_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
    """Return the router of reviewing partners, and of approving and declining them."""

    @post("/{partner_id:str}/review", opt=PARTNERS)
    async def review(request: AnyRequest, partner_id: PathText) -> Html:
        """Record what the team has looked at, and its note."""
        return await _reviewed(context, request, partner_id)

    @post("/{partner_id:str}/approve", opt=PARTNERS)
    async def approve(request: AnyRequest, partner_id: PathText) -> Html:
        """Approve a partner."""
        await proofs.require(request)
        return await _approved(context, request, partner_id)

    @post("/{partner_id:str}/decline", opt=PARTNERS)
    async def decline(request: AnyRequest, partner_id: PathText) -> Html:
        """Decline a partner, with a reason."""
        reason = form_of(request).get("reason", "")
        version, cause = expected_version(request), staff_cause(request)
        if not 0 < len(reason) <= WORDS_CHARACTERS_MAX or unseen_fault(reason):
            return await partner_page(
                context, request, partner_id, 400, reason=reason, status_version=version
            )
        deciding = context.partners.decline(partner_id, cause, reason, version)
        return await _decided(context, request, partner_id, deciding)

    return OneOffRouter("/partners", route_handlers=[review, approve, decline])


async def _approved(context: BackofficeContext, request: AnyRequest, partner_id: str) -> Html:
    """Approve a partner with the website that the form confirms, or show what is wrong with it."""
    website = form_of(request).get("website", "")
    version, cause = expected_version(request), staff_cause(request)
    try:
        confirmed = check(PartnerApproval, website=website_of(website))
    except Refusal as refusal:
        refused = RefusedWebsite(website, messages_of(refusal))
        return await partner_page(
            context, request, partner_id, 400, website=refused, status_version=version
        )
    deciding = context.partners.approve(partner_id, cause, confirmed.website, version)
    return await _decided(context, request, partner_id, deciding)


async def _decided(
    context: BackofficeContext, request: AnyRequest, partner_id: str, deciding: Awaitable[None]
) -> Html:
    """Decide on a partner, or show that a colleague has decided meanwhile."""
    try:
        await deciding
    except Refusal as refusal:
        if refusal.code != "form_outdated":
            raise
        return await partner_page(context, request, partner_id, 409, is_decided=True)
    return lead_to(f"/backoffice/partners/{partner_id}")


async def _reviewed(context: BackofficeContext, request: AnyRequest, partner_id: str) -> Html:
    """Save a review, or show it as it was sent with what is wrong with it."""
    await context.partner_named(partner_id)
    form = form_of(request)
    note, ticked = form.get("note", ""), [check for check in CHECKS if check in form]
    version, cause = expected_version(request), staff_cause(request)
    try:
        check(PartnerNote, note=note)
        await context.reviews.save(partner_id, ticked, note, version, cause)
    except Refusal as refusal:
        faults = messages_of(refusal)
        if not faults and refusal.code != "form_outdated":
            raise
        sent = Sent(note, ticked, version, faults, is_outdated=not faults)
        status = 409 if sent.is_outdated else 400
        return await partner_page(context, request, partner_id, status, sent=sent)
    return lead_to(f"/backoffice/partners/{partner_id}")
