"""`/console/{partner_id}/team`: who may use the console of this partner."""

from litestar import get, post

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.http.scalars import email_fault
from service.ledger.events import KEY_MISSING
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.gate import member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.partners.commands import PartnerCommands

TEAM = {"page": Page("member", "console.nav.team", ACCOUNT)}


def members_router(
    commands: PartnerCommands, partners: PartnersReader, proofs: Proofs
) -> OneOffRouter:
    """Return the router of a partner's team."""

    async def shown(
        request: AnyRequest, partner_id: str, email: str = "", faults: tuple[str, ...] = ()
    ) -> Html:
        known = (await commands.look(partner_id)).members
        members = [
            {**row, "email": known[row["member_id"]].email or KEY_MISSING}
            for row in await partners.members(partner_id)
            if row["member_id"] in known
        ]
        status = 400 if faults else 200
        return console_page(
            request, "team.html", status, members=members, email=email, faults=faults
        )

    @get(opt=TEAM)
    async def team(request: AnyRequest, partner_id: PathText) -> Html:
        """List the partner's people."""
        return await shown(request, partner_id)

    @post(opt=TEAM)
    async def add(request: AnyRequest, partner_id: PathText) -> Html:
        """Add a colleague."""
        email = form_of(request).get("email", "")
        fault = email_fault(email)
        if fault is not None:
            return await shown(request, partner_id, email, (fault,))
        await proofs.require(request)  # a colleague could issue keys without this one's passkey
        await commands.add_member(partner_id, email, member_cause(request))
        return lead_to(f"{member_of(request).path}/team")

    @get("/{member_id:str}/remove", opt=TEAM)
    async def confirm(request: AnyRequest, member_id: PathText) -> Html:
        """Explain what removing somebody means, and ask for confirmation."""
        member = member_of(request)
        who = (await commands.look(member.partner_id)).members.get(member_id)
        if who is None:
            raise Refusal("member_not_found")
        themselves, email = member_id == member.member_id, who.email or KEY_MISSING
        return console_page(request, "member_remove.html", email=email, themselves=themselves)

    @post("/{member_id:str}/remove", opt=TEAM)
    async def remove(request: AnyRequest, member_id: PathText) -> Html:
        """Remove somebody from the team; anybody but oneself takes a fresh proof."""
        member = member_of(request)
        if member_id != member.member_id:
            await proofs.require(request)  # whoever took over an account would be alone in it
        await commands.remove_member(member.partner_id, member_id, member_cause(request))
        return lead_to("/console" if member_id == member.member_id else f"{member.path}/team")

    return OneOffRouter(f"{CONSOLE}/team", route_handlers=[team, add, confirm, remove])
