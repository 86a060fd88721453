"""`/console/{partner_id}/settings`: magic links (contract 2.2), and where customers return to."""

from collections.abc import Mapping, Sequence

from litestar import get, post

from service.core.errors import Refusal
from service.facts.partners import Partner
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.pages.console.frame import ACCOUNT, CONSOLE, console_page
from service.pages.gate import Member, member_cause, member_of
from service.pages.proof import Proofs
from service.pages.shell import faults_of, lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import expected_version, form_of
from service.partners.commands import PartnerCommands
from service.partners.wire import ReturnUrl, leads_to

SETTINGS = {"page": Page("member", "console.nav.settings", ACCOUNT)}


def reach_nobody(settings: Member | Partner) -> bool:
    """Return whether links reach nobody: such an onboarding can never be finished."""
    return settings.suppress_email and not settings.return_link


def settings_router(commands: PartnerCommands, proofs: Proofs) -> OneOffRouter:
    """Return the router of settings; the API obeys from its next request on."""

    @get(opt=SETTINGS)
    async def settings(request: AnyRequest) -> Html:
        """Show the settings and their risks."""
        member = member_of(request)
        known = await commands.look(member.partner_id)
        member = member._replace(return_link=known.return_link, suppress_email=known.suppress_email)
        return _shown(request, member, known.return_url or "", known)

    @post(opt=SETTINGS)
    async def save(request: AnyRequest, partner_id: PathText) -> Html:
        """Change the settings; ask for a fresh proof where customers would return elsewhere."""
        member, form = member_of(request), form_of(request)
        chosen = member._replace(
            return_link="return_link" in form, suppress_email="suppress_email" in form
        )
        known, version = await commands.look(partner_id), expected_version(request)
        known_url = known.return_url or ""
        url = form.get("return_url", known_url).strip()  # none from a page of an earlier release
        try:
            check(ReturnUrl, return_url=url)
            wanted = (chosen.return_link, chosen.suppress_email, url)
            now = (known.return_link, known.suppress_email, known_url)
            if wanted != now and version != known.settings_version:
                # Before a proof is asked for in vain; the command sees what comes later.
                return _shown(request, chosen, url, known, is_outdated=True)
            if reach_nobody(chosen) and not reach_nobody(known) and "nobody" not in form:
                return _shown(request, chosen, url, known, asked=True)
            if url != known_url:
                await proofs.require(request)
            await commands.change_settings(
                partner_id,
                member_cause(request),
                return_link=chosen.return_link,
                suppress_email=chosen.suppress_email,
                return_url=None if url == known_url else url,
                expected_version=version,
            )
        except Refusal as refusal:
            if refusal.code == "form_outdated":
                known = await commands.look(partner_id)
                return _shown(request, chosen, url, known, is_outdated=True)
            if refusal.code == "partner_state":  # revoked since the form was opened
                return lead_to(member.path)
            faults = faults_of(refusal)
            if not faults:
                raise
            return _shown(request, chosen, url, known, faults=faults, version=version)
        return lead_to(f"{member.path}/settings?saved")

    return OneOffRouter(f"{CONSOLE}/settings", route_handlers=[settings, save])


def _shown(
    request: AnyRequest,
    chosen: Member,
    return_url: str,
    known: Partner,
    *,
    asked: bool = False,
    is_outdated: bool = False,
    faults: Mapping[str, Sequence[str]] | None = None,
    version: int | None = None,
) -> Html:
    """Return the form; `asked`: it asks to confirm settings under which nobody gets a link.

    `is_outdated`: a colleague has changed them since it was opened, to what is `known`. `version`
    is the one that a form with faults was about, and is about when it is sent again.
    """
    is_back = asked or bool(faults)
    return console_page(
        request,
        "settings.html",
        409 if is_outdated else 400 if is_back else 200,
        member=chosen,
        return_url=return_url,
        known=known,
        leads_elsewhere=not leads_to(known.return_url or "", known.verified_website),
        version=known.settings_version if version is None else version,
        saved=not (is_back or is_outdated) and "saved" in request.query_params,
        asked=asked,
        is_outdated=is_outdated,
        nobody=reach_nobody(chosen),
        faults=faults or {},
    )
