"""`/console/{partner_id}/settings`: what the API does with magic links (contract 2.2)."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from service.http.bodies import AnyRequest
from service.pages.console.frame import Member, MemberOf, console_page, member_cause
from service.pages.shell import lead_to
from service.pages.visit import read_form
from service.partners.commands import PartnerCommands


def nobody_gets(member: Member) -> bool:
    """Return whether links reach nobody: such an onboarding can never be finished."""
    return member.suppress_email and not member.return_link


def settings_router(commands: PartnerCommands, member_of: MemberOf) -> Router:
    """Return the router of settings; the API obeys from its next request on."""

    @get("/console/{partner_id:str}/settings", opt={"page": "member"})
    async def settings(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        saved = "saved" in request.query_params
        return _shown(request, member, saved=saved)

    @post("/console/{partner_id:str}/settings", opt={"page": "member"})
    async def save(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        form = await read_form(request)
        chosen = member._replace(
            return_link="return_link" in form, suppress_email="suppress_email" in form
        )
        if nobody_gets(chosen) and not nobody_gets(member) and "nobody" not in form:
            return _shown(request, chosen, 400, asked=True)
        await commands.change_settings(
            partner_id,
            member_cause(request, member.person),
            return_link=chosen.return_link,
            suppress_email=chosen.suppress_email,
        )
        return lead_to(f"{member.path}/settings?saved")

    return Router("/", route_handlers=[settings, save])


def _shown(
    request: AnyRequest,
    member: Member,
    status: int = 200,
    *,
    saved: bool = False,
    asked: bool = False,
) -> Response[bytes]:
    """Return the form; `asked` about the pair of settings by which nobody gets a link."""
    return console_page(
        request,
        member,
        "settings",
        "console/settings.html",
        status,
        saved=saved,
        asked=asked,
        nobody=nobody_gets(member),
    )
