"""`/console/{partner_id}/team`: who may use the console of this partner."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.scalars import email_fault
from service.ledger.events import ERASED
from service.pages.console.frame import Member, MemberOf, console_page, member_cause
from service.pages.shell import lead_to
from service.pages.visit import read_form
from service.partners.commands import PartnerCommands


def members_router(
    commands: PartnerCommands, partners: PartnersReader, member_of: MemberOf
) -> Router:
    """Return the router of a partner's team."""

    async def team(
        request: AnyRequest, member: Member, email: str = "", faults: tuple[str, ...] = ()
    ) -> Response[bytes]:
        known = (await commands.look(member.partner_id)).members
        members = [
            {**row, "email": known[row["member_id"]].email or ERASED}
            for row in await partners.members(member.partner_id)
            if row["member_id"] in known
        ]
        return console_page(
            request,
            member,
            "team",
            "console/team.html",
            400 if faults else 200,
            members=members,
            email=email,
            faults=faults,
        )

    @get("/console/{partner_id:str}/team", opt={"page": "member"})
    async def listed(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        return await team(request, await member_of(request, partner_id))

    @post("/console/{partner_id:str}/team", opt={"page": "member"})
    async def add(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        email = (await read_form(request)).get("email", "")
        fault = email_fault(email)
        if fault is not None:
            return await team(request, member, email, (fault,))
        await commands.add_member(partner_id, email, member_cause(request, member.person))
        return lead_to(f"{member.path}/team")

    @get("/console/{partner_id:str}/team/{member_id:str}/remove", opt={"page": "member"})
    async def confirm(
        request: AnyRequest, partner_id: FromPath[str], member_id: FromPath[str]
    ) -> Response[bytes]:
        member = await member_of(request, partner_id)
        who = (await commands.look(partner_id)).members.get(member_id)
        if who is None:
            raise Refusal("member_not_found")
        return console_page(
            request,
            member,
            "team",
            "console/member_remove.html",
            email=who.email or ERASED,
            themselves=member_id == member.member_id,
        )

    @post("/console/{partner_id:str}/team/{member_id:str}/remove", opt={"page": "member"})
    async def remove(
        request: AnyRequest, partner_id: FromPath[str], member_id: FromPath[str]
    ) -> Response[bytes]:
        member = await member_of(request, partner_id)
        await read_form(request)
        await commands.remove_member(partner_id, member_id, member_cause(request, member.person))
        return lead_to("/console" if member_id == member.member_id else f"{member.path}/team")

    return Router("/", route_handlers=[listed, add, confirm, remove])
