"""`/console/{partner_id}/sandbox`: entities to test with, and resetting them."""

from litestar import get, post

from projections.connections.reader import ConnectionsReader
from projections.onboardings.reader import OnboardingsReader
from projections.partners.reader import PartnersReader
from service.core.errors import Refusal, invalid
from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.pages.console.frame import CONSOLE, START, console_page
from service.pages.console.listing import asked_place, shown_page
from service.pages.gate import Member, member_cause, member_of
from service.pages.shell import lead_to
from service.pages.site_map import Html, Page, PathText
from service.pages.visit import form_of
from service.sandbox.commands import SandboxCommands
from service.sandbox.fixtures import fixture_ids

PAGE = 25
SANDBOX = {"page": Page("approved", "sandbox.nav", START)}


def sandbox_router(
    commands: SandboxCommands,
    partners: PartnersReader,
    connections: ConnectionsReader,
    onboardings: OnboardingsReader,
) -> OneOffRouter:
    """Return the router of the sandbox, from the read models of test mode.

    Only an approved partner has one.
    """

    @get(opt=SANDBOX)
    async def sandbox(request: AnyRequest) -> Html:
        """Show the entities to test with."""
        # It creates nothing: a subscriber makes the fixtures, moments after the approval.
        member = member_of(request)
        row = await partners.sandbox(member.partner_id)
        since = row["sandbox_reset_at"] if row else None
        before = asked_place(request)
        rows = await onboardings.page(member.partner_id, PAGE + 1, before, since)
        return console_page(
            request,
            "sandbox.html",
            fixtures=await _fixtures(connections, member),
            since=since,
            **shown_page(request, "onboardings", rows, PAGE, "started_at", "onboarding_id"),
        )

    @post("/entities/{entity_id:str}", opt=SANDBOX)
    async def drive(request: AnyRequest, entity_id: PathText) -> Html:
        """Connect or disconnect a business of the sandbox."""
        member = member_of(request)
        wanted = form_of(request).get("to", "")
        change = {"connect": commands.connect, "disconnect": commands.disconnect}.get(wanted)
        if change is None:
            raise invalid("to", "expected connect or disconnect")
        if "\0" in entity_id:
            raise Refusal("sandbox_entity_not_found")
        await change(member.partner_id, member.sandbox_epoch, entity_id, member_cause(request))
        return lead_to(f"{member.path}/sandbox")

    @get("/reset", opt=SANDBOX)
    async def confirm(request: AnyRequest) -> Html:
        """Explain what resetting the sandbox means, and ask for confirmation."""
        return console_page(request, "sandbox_reset.html")

    @post("/reset", opt=SANDBOX)
    async def reset(request: AnyRequest, partner_id: PathText) -> Html:
        """Reset the sandbox."""
        member = member_of(request)
        next_epoch = member.sandbox_epoch + 1
        # The form names the epoch that it begins: sent twice, it resets the sandbox once.
        if form_of(request).get("epoch") == str(next_epoch):
            await commands.reset(partner_id, next_epoch, member_cause(request))
        return lead_to(f"{member.path}/sandbox")

    return OneOffRouter(f"{CONSOLE}/sandbox", route_handlers=[sandbox, drive, confirm, reset])


async def _fixtures(connections: ConnectionsReader, member: Member) -> list[dict[str, object]]:
    """Return the fixtures; none while they are being made, which is one transaction."""
    ids = fixture_ids(member.partner_id, member.sandbox_epoch)._asdict()
    try:
        return [
            {
                "name": name.removesuffix("_entity_id"),
                "access": await connections.access(member.partner_id, entity_id),
            }
            for name, entity_id in ids.items()
        ]
    except Refusal:
        return []
