"""`/backoffice/partners/<id>/review`: what the team looked at of a partner, and its decision."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from litestar import post

from service.core.errors import Refusal
from service.core.invisible_characters import unseen_fault
from service.facts.reviews import CHECKS
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.pages.backoffice.frame import BackofficeContext
from service.pages.backoffice.partners import PARTNERS, Sent, partner_page, stored_in
from service.pages.gate import staff_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to, messages_of
from service.pages.site_map import Html, PathText
from service.pages.visit import REVIEW_FIELD, STATUS_FIELD, VERSION_FIELD, expected_version, form_of
from service.pages.words import text
from service.partners.wire import WORDS_CHARACTERS_MAX, PartnerApproval, PartnerNote, website_of

Faults = Mapping[str, Sequence[str]]
"""What is wrong with a form, by field."""
NONE: Final[Faults] = MappingProxyType({})


def review_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
    """Return the router of reviewing partners, and of deciding on them and their websites."""

    @post("/{partner_id:str}/review", opt=PARTNERS)
    async def review(request: AnyRequest, partner_id: PathText) -> Html:
        """Record what the team has looked at, and its note."""
        sent = await _sent(context, request, partner_id)
        refused = await _unsaved(context, request, partner_id, sent)
        known = await context.partners.look(partner_id)
        is_more = sent.reason or sent.website != (known.verified_website or "")
        if refused is None and is_more:  # whose button is another one
            return await partner_page(context, request, partner_id, sent=sent, is_saved=True)
        return refused or lead_to(f"/backoffice/partners/{partner_id}")

    @post("/{partner_id:str}/approve", opt=PARTNERS)
    async def approve(request: AnyRequest, partner_id: PathText) -> Html:
        """Record the review, and approve a partner with the website that the form confirms."""
        await proofs.require(request)
        return await _with_website(context, request, partner_id, context.partners.approve)

    @post("/{partner_id:str}/website", opt=PARTNERS)
    async def website(request: AnyRequest, partner_id: PathText) -> Html:
        """Record the review, and an approved partner's verified website, or that it has none."""
        await proofs.require(request)
        return await _with_website(context, request, partner_id, context.partners.verify_website)

    @post("/{partner_id:str}/decline", opt=PARTNERS)
    async def decline(request: AnyRequest, partner_id: PathText) -> Html:
        """Record the review, and decline a partner, with a reason."""
        faults: Faults = {}
        reason = form_of(request).get("reason", "")
        if not 0 < len(reason) <= WORDS_CHARACTERS_MAX or unseen_fault(reason):
            told = text("backoffice.partner.reason_fault", most=WORDS_CHARACTERS_MAX)
            faults = {"reason": [told]}
        decide = partial(context.partners.decline, reason=reason)
        return await _decided(context, request, partner_id, faults, decide)

    return OneOffRouter("/partners", route_handlers=[review, approve, website, decline])


async def _with_website(
    context: BackofficeContext,
    request: AnyRequest,
    partner_id: str,
    decide: Callable[..., Awaitable[None]],
) -> Html:
    """Decide with the website that the form confirms, as `_decided` does."""
    faults: Faults = {}
    website = website_of(form_of(request).get("website", ""))
    try:
        website = check(PartnerApproval, website=website).website
    except Refusal as refusal:
        faults = {"website": messages_of(refusal)}
    return await _decided(context, request, partner_id, faults, partial(decide, website=website))


async def _decided(
    context: BackofficeContext,
    request: AnyRequest,
    partner_id: str,
    faults: Faults,
    decide: Callable[..., Awaitable[None]],
) -> Html:
    """Save the review, and decide on a partner, or show that a colleague has decided meanwhile.

    `faults` are those of what the decision says.
    """
    sent = await _sent(context, request, partner_id)

    async def save() -> Html | None:
        return await _unsaved(context, request, partner_id, sent, faults)

    async def decide_now() -> Html | None:
        try:
            await decide(partner_id, staff_cause(request), expected_version=sent.version)
        except Refusal as refusal:
            if refusal.code != "form_outdated":
                raise
            return await partner_page(context, request, partner_id, 409, sent=sent, is_decided=True)
        return None

    known = await context.reviews.look(partner_id)
    # Where a colleague has decided, nothing is saved unless they have decided alike.
    is_late = not faults and known.partner.status_version != sent.version
    for step in (decide_now, save) if is_late else (save, decide_now):
        refused = await step()
        if refused is not None:
            return refused
    return lead_to(f"/backoffice/partners/{partner_id}")


async def _unsaved(
    context: BackofficeContext,
    request: AnyRequest,
    partner_id: str,
    sent: Sent,
    faults: Faults = NONE,
) -> Html | None:
    """Save a review; return the form as it was sent if it was not, with what is wrong with it.

    Nothing is saved of a form of which anything else is at fault.
    """
    try:
        check(PartnerNote, note=sent.note)
    except Refusal as refusal:
        faults = {"note": messages_of(refusal), **faults}
    if faults:
        return await partner_page(context, request, partner_id, 400, sent=sent, faults=faults)
    given = (sent.checks, sent.note, sent.review_version, staff_cause(request))
    try:
        await context.reviews.save(partner_id, *given)
    except Refusal as refusal:
        if refusal.code != "form_outdated":
            raise
        return await partner_page(context, request, partner_id, 409, sent=sent, is_outdated=True)
    return None


async def _sent(context: BackofficeContext, request: AnyRequest, partner_id: str) -> Sent:
    """Return what a form holds; where an earlier release's has no review, the stored one's."""
    await context.partner_named(partner_id)
    form = form_of(request)
    review_version = expected_version(request, REVIEW_FIELD)
    version = expected_version(request, STATUS_FIELD if STATUS_FIELD in form else VERSION_FIELD)
    stored = stored_in(await context.reviews.look(partner_id))
    if REVIEW_FIELD in form:
        ticked = [check for check in CHECKS if f"check_{check}" in form]
        sent = stored._replace(note=form.get("note", ""), checks=ticked)
        sent = sent._replace(review_version=review_version, version=version)
    else:
        if "note" in form:  # an earlier release's review: outdated, whatever its version
            ticked = [check for check in CHECKS if check in form]
            return stored._replace(note=form["note"], checks=ticked, review_version=review_version)
        sent = stored._replace(version=version)
    website = form.get("website", sent.website)
    return sent._replace(website=website, reason=form.get("reason", ""))
