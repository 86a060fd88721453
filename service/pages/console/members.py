"""`/console/{partner_id}/team`: who may use the console of this partner."""

from collections.abc import Mapping
from typing import Final

from litestar import get, post

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.facts.partners import Partner, TeamMember
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.http.scalars import email_fault, typed_email
from service.ledger.events import KEY_MISSING
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.gate import Member, member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.partners.commands import PartnerCommands
from service.partners.decisions import is_applicant

TEAM = {"page": Page("member", "console.nav.team", ACCOUNT)}
_DONE: Final = frozenset({"added", "already"})
"""What the page can say was just done, in `?done=`."""


def members_router(
    commands: PartnerCommands, partners: PartnersReader, proofs: Proofs
) -> OneOffRouter:
    """Return the router of a partner's team."""

    async def shown(request: AnyRequest, email: str = "", faults: tuple[str, ...] = ()) -> Html:
        member = member_of(request)
        partner = await commands.look(member.partner_id)
        known = _seen(member, partner)
        done = request.query_params.get("done")
        members = [
            {**row, "email": known[row["member_id"]].email or KEY_MISSING}
            for row in await partners.members(member.partner_id)
            if row["member_id"] in known
        ]
        return console_page(
            request,
            "team.html",
            400 if faults else 200,
            members=members,
            is_waiting=partner.status == "pending" and is_applicant(partner, member.member_id),
            email=email,
            faults=faults,
            done=done if done in _DONE else None,
        )

    @get(opt=TEAM)
    async def team(request: AnyRequest) -> Html:
        """List the partner's people."""
        return await shown(request)

    @post(opt={"page": Page("approved")})
    async def add(request: AnyRequest, partner_id: PathText) -> Html:
        """Add a colleague."""
        email = typed_email(form_of(request).get("email", ""))
        fault = email_fault(email)
        if fault is not None:
            return await shown(request, email, (fault,))
        await proofs.require(request)  # a colleague could issue keys without this one's passkey
        is_new = await commands.add_member(partner_id, email, member_cause(request))
        return lead_to(f"{member_of(request).path}/team?done={'added' if is_new else 'already'}")

    @get("/{member_id:str}/remove", opt=TEAM)
    async def confirm(request: AnyRequest, member_id: PathText) -> Html:
        """Explain what removing somebody means, and ask for confirmation."""
        member = member_of(request)
        who = _seen(member, await commands.look(member.partner_id)).get(member_id)
        if who is None:
            raise Refusal("member_not_found")
        themselves, email = member_id == member.member_id, who.email or KEY_MISSING
        return console_page(request, "member_remove.html", email=email, themselves=themselves)

    @post("/{member_id:str}/remove", opt=TEAM)
    async def remove(request: AnyRequest, member_id: PathText) -> Html:
        """Remove somebody from the team; anybody but oneself takes a fresh proof."""
        member = member_of(request)
        if member_id != member.member_id:
            if member_id not in _seen(member, await commands.look(member.partner_id)):
                raise Refusal("member_not_found")
            await proofs.require(request)  # whoever took over an account would be alone in it
        await commands.remove_member(member.partner_id, member_id, member_cause(request))
        return lead_to("/console" if member_id == member.member_id else f"{member.path}/team")

    return OneOffRouter(f"{CONSOLE}/team", route_handlers=[team, add, confirm, remove])


def _seen(member: Member, partner: Partner) -> Mapping[str, TeamMember]:
    """Return whom a member sees of the team, and can remove.

    Themselves alone unless the partner is approved: anybody can apply, and before it took an
    approval they could add all addresses that they know.
    """
    if partner.status == "approved":
        return partner.members
    return {key: one for key, one in partner.members.items() if key == member.member_id}
