"""`/console/{partner_id}/settings`: what the API does with magic links (contract 2.2)."""

from litestar import get, post

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.gate import Member, member_cause, member_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.partners.commands import PartnerCommands

SETTINGS = {"page": Page("member", "console.nav.settings", ACCOUNT)}


def reach_nobody(member: Member) -> bool:
    """Return whether links reach nobody: such an onboarding can never be finished."""
    return member.suppress_email and not member.return_link


def settings_router(commands: PartnerCommands) -> OneOffRouter:
    """Return the router of settings; the API obeys from its next request on."""

    @get(opt=SETTINGS)
    async def settings(request: AnyRequest) -> Html:
        """Show the settings and their risks."""
        return _shown(request, member_of(request))

    @post(opt=SETTINGS)
    async def save(request: AnyRequest, partner_id: PathText) -> Html:
        """Change the settings."""
        member = member_of(request)
        form = form_of(request)
        chosen = member._replace(
            return_link="return_link" in form, suppress_email="suppress_email" in form
        )
        if reach_nobody(chosen) and not reach_nobody(member) and "nobody" not in form:
            return _shown(request, chosen, asked=True)
        await commands.change_settings(
            partner_id,
            member_cause(request),
            return_link=chosen.return_link,
            suppress_email=chosen.suppress_email,
        )
        return lead_to(f"{member.path}/settings?saved")

    return OneOffRouter(f"{CONSOLE}/settings", route_handlers=[settings, save])


def _shown(request: AnyRequest, member: Member, *, asked: bool = False) -> Html:
    """Return the form; `asked`: it asks to confirm settings under which nobody gets a link."""
    saved = not asked and "saved" in request.query_params
    status, nobody = 400 if asked else 200, reach_nobody(member)
    return console_page(
        request, "settings.html", status, member=member, saved=saved, asked=asked, nobody=nobody
    )
