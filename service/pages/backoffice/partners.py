"""`/backoffice/partners`: the partners by state, and what each of them has."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from litestar import get, post

from service.facts.partners import TeamMember
from service.facts.reviews import CHECKS, Review
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.sql import queries
from service.pages.backoffice.alphabets import alphabets
from service.pages.backoffice.frame import BackofficeContext, IdUnknown, backoffice_page
from service.pages.gate import staff_cause
from service.pages.proof import Proofs
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.partners.reviews import Reviewed
from service.partners.wire import NOTE_CHARACTERS_MAX, WORDS_CHARACTERS_MAX
from service.people.sessions import Person

STATES: Final = ("pending", "approved", "declined", "revoked")
PARTNERS: Final = {"page": Page("staff", "backoffice.nav.partners")}
PAGE: Final = 50

_SQL = queries("service.pages.backoffice")


class Sent(NamedTuple):
    """What a partner's form holds: a review, what a decision says, and the versions of both."""

    note: str
    checks: Sequence[str]
    review_version: int
    version: int
    website: str = ""
    reason: str = ""


def partners_router(context: BackofficeContext, proofs: Proofs) -> OneOffRouter:
    """Return the router of looking at partners, and of revoking them."""

    @get(opt=PARTNERS)
    async def partners(request: AnyRequest) -> Html:
        """List the partners by state, pending ones first."""
        asked = request.query_params.get("state", "")
        state = asked if asked in STATES else STATES[0]
        after = request.query_params.get("after", "")
        rows = await context.accounts.reads.fetch(
            _SQL.partners_page, state, after or None, PAGE + 1
        )
        return backoffice_page(
            request,
            "partners.html",
            state=state,
            states=STATES,
            counts=await context.counts(),
            partners=rows[:PAGE],
            next_page=rows[PAGE - 1]["partner_id"] if len(rows) > PAGE else None,
        )

    @get("/{partner_id:str}", opt=PARTNERS)
    async def partner(request: AnyRequest, partner_id: PathText) -> Html:
        """Show a partner's application, keys, settings and people."""
        return await partner_page(context, request, partner_id)

    @get("/{partner_id:str}/revoke", opt=PARTNERS)
    async def confirm(request: AnyRequest, partner_id: PathText) -> Html:
        """Explain what revoking a partner's access means, and ask for confirmation."""
        partner = await context.partners.look(partner_id)
        if not partner.status:
            raise IdUnknown(partner_id)
        if partner.status != "approved":
            return lead_to(f"/backoffice/partners/{partner_id}")
        return backoffice_page(request, "revoke.html", partner=partner)

    @post("/{partner_id:str}/revoke", opt=PARTNERS)
    async def revoke(request: AnyRequest, partner_id: PathText) -> Html:
        """Revoke a partner's access."""
        await proofs.require(request)
        await context.partners.revoke(partner_id, staff_cause(request))
        return lead_to(f"/backoffice/partners/{partner_id}")

    handlers = [partners, partner, confirm, revoke]
    return OneOffRouter("/partners", route_handlers=handlers)


async def partner_page(
    context: BackofficeContext,
    request: AnyRequest,
    partner_id: str,
    status: int = 200,
    *,
    sent: Sent | None = None,
    faults: Mapping[str, Sequence[str]] | None = None,
    is_outdated: bool = False,
    is_decided: bool = False,
    is_saved: bool = False,
) -> Html:
    """Return one partner's page; what was `sent` comes back with its `faults`, by field.

    `is_outdated`: somebody else has saved the review since. The form is then about what they saved,
    and shows it but for what was changed in it. `is_decided`: a colleague has decided while
    somebody else's form was open. `is_saved`: its review was saved, and it says more, which waits
    for a decision, unless a colleague has decided.
    """
    rows = await context.partner_list.partners(partner_id)
    if not rows:
        raise IdUnknown(partner_id)
    reviewed = await context.reviews.look(partner_id)
    partner, review, decisions = reviewed
    sent = sent or stored_in(reviewed)
    if is_outdated or is_saved:
        seen = await context.reviews.look(partner_id, sent.review_version)
        sent = _on_stored(sent, seen.review, review)
    if is_saved and sent.version != partner.status_version:
        # Their button was not the website's: a later press of it would undo a colleague's decision.
        is_decided, sent = True, sent._replace(website=partner.verified_website or "")
    if is_decided:
        sent = sent._replace(version=partner.status_version)
    return backoffice_page(
        request,
        "partner.html",
        status,
        partner=partner,
        written=[
            (name, found)
            for name in (partner.name, partner.contact_name)
            if name and (found := alphabets(name))
        ],
        members=[(key, member, _person_id(member)) for key, member in partner.members.items()],
        applied_at=rows[0]["applied_at"],
        keys=await context.partner_list.keys(partner_id),
        review=review,
        decisions=decisions,
        checks=CHECKS,
        sent=sent,
        faults=faults or {},
        is_outdated=is_outdated,
        team={f"staff:{one.staff_id}": one.email for one in (await context.staff.list()).members},
        is_decided=is_decided,
        is_saved=is_saved,
        reason_max=WORDS_CHARACTERS_MAX,
        note_max=NOTE_CHARACTERS_MAX,
    )


def stored_in(reviewed: Reviewed) -> Sent:
    """Return the form of what is stored."""
    partner, review, _ = reviewed
    versions = (review.version, partner.status_version)
    website = partner.verified_website or ""
    return Sent(review.note or "", list(review.checks), *versions, website)


def _on_stored(sent: Sent, seen: Review, stored: Review) -> Sent:
    """Return a form on the stored review: as stored, but for what its sender changed of `seen`.

    Otherwise it would undo, in its sender's name, what a colleague saved and they never saw.
    """
    changed = set(sent.checks) ^ set(seen.checks)
    checks = [one for one in CHECKS if one in (sent.checks if one in changed else stored.checks)]
    is_left = sent.note == (seen.note or "")
    note = stored.note or "" if is_left else sent.note
    return sent._replace(note=note, checks=checks, review_version=stored.version)


def _person_id(member: TeamMember) -> str | None:
    """Return the id by which events name a member; None once their data is erased."""
    if member.email is None or member.email_hash is None:
        return None
    return Person(member.email, member.email_hash, "").person_id
