"""`/console/{partner_id}/settings`: magic links (contract 2.2), and where customers return to."""

from collections.abc import Mapping, Sequence

from litestar import get, post

from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.gate import Member, member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import faults_of, lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.partners.commands import PartnerCommands
from service.partners.wire import ReturnUrl

SETTINGS = {"page": Page("member", "console.nav.settings", ACCOUNT)}


def reach_nobody(member: Member) -> bool:
    """Return whether links reach nobody: such an onboarding can never be finished."""
    return member.suppress_email and not member.return_link


def settings_router(commands: PartnerCommands, proofs: Proofs) -> OneOffRouter:
    """Return the router of settings; the API obeys from its next request on."""

    @get(opt=SETTINGS)
    async def settings(request: AnyRequest) -> Html:
        """Show the settings and their risks."""
        member = member_of(request)
        return _shown(request, member, await known_url(member))

    async def known_url(member: Member) -> str:
        return (await commands.look(member.partner_id)).return_url or ""

    @post(opt=SETTINGS)
    async def save(request: AnyRequest, partner_id: PathText) -> Html:
        """Change the settings; ask for a fresh proof where customers would return elsewhere."""
        member = member_of(request)
        form = form_of(request)
        chosen = member._replace(
            return_link="return_link" in form, suppress_email="suppress_email" in form
        )
        known = await known_url(member)
        url = form.get("return_url", known).strip()  # none from a page of before there was one
        try:
            check(ReturnUrl, return_url=url)
            if reach_nobody(chosen) and not reach_nobody(member) and "nobody" not in form:
                return _shown(request, chosen, url, asked=True)
            if url != known:
                await proofs.require(request)
            await commands.change_settings(
                partner_id,
                member_cause(request),
                return_link=chosen.return_link,
                suppress_email=chosen.suppress_email,
                return_url=None if url == known else url,
            )
        except Refusal as refusal:
            faults = faults_of(refusal)
            if not faults:
                raise
            return _shown(request, chosen, url, faults=faults)
        return lead_to(f"{member.path}/settings?saved")

    return OneOffRouter(f"{CONSOLE}/settings", route_handlers=[settings, save])


def _shown(
    request: AnyRequest,
    member: Member,
    return_url: str,
    *,
    asked: bool = False,
    faults: Mapping[str, Sequence[str]] | None = None,
) -> Html:
    """Return the form; `asked`: it asks to confirm settings under which nobody gets a link."""
    is_back = asked or bool(faults)
    return console_page(
        request,
        "settings.html",
        400 if is_back else 200,
        member=member,
        return_url=return_url,
        saved=not is_back and "saved" in request.query_params,
        asked=asked,
        nobody=reach_nobody(member),
        faults=faults or {},
    )
