"""`/console/{partner_id}/sandbox`: entities to test with, and beginning anew."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from projections.connections.reader import ConnectionsReader
from projections.onboardings.reader import OnboardingsReader
from projections.partners.reader import PartnersReader
from service.core.errors import Refusal, invalid
from service.http.bodies import AnyRequest
from service.pages.console.frame import Member, MemberOf, console_page, member_cause
from service.pages.console.listing import asked_place, next_place
from service.pages.shell import lead_to
from service.pages.visit import read_form
from service.sandbox.commands import SandboxCommands
from service.sandbox.fixtures import fixture_ids

PAGE = 25


class SandboxPages:
    """What the handlers share: the parts, and what the page shows."""

    def __init__(
        self,
        commands: SandboxCommands,
        partners: PartnersReader,
        connections: ConnectionsReader,
        onboardings: OnboardingsReader,
    ) -> None:
        """Take the read models of test mode."""
        self.commands = commands
        self._partners = partners
        self._connections = connections
        self._onboardings = onboardings

    async def shown(self, request: AnyRequest, member: Member) -> Response[bytes]:
        """Return the page. It makes nothing: fixtures are the subscriber's, moments after."""
        partner_id = member.partner_id
        fixtures = await self._made(partner_id, member.sandbox_epoch)
        row = await self._partners.sandbox(partner_id)
        since = row["sandbox_reset_at"] if row else None
        before = asked_place(request)
        rows = await self._onboardings.page(partner_id, PAGE + 1, before, since)
        return console_page(
            request,
            member,
            "sandbox",
            "console/sandbox.html",
            fixtures=fixtures,
            since=since,
            onboardings=rows[:PAGE],
            before=next_place(rows, PAGE, "started_at", "onboarding_id"),
            is_first=before is None,
        )

    async def _made(self, partner_id: str, epoch: int) -> list[dict[str, object]]:
        """Return the fixtures; none while they are being made, which is one transaction."""
        ids = fixture_ids(partner_id, epoch)._asdict()
        try:
            return [
                {
                    "name": name.removesuffix("_entity_id"),
                    "access": await self._connections.access(partner_id, entity_id),
                }
                for name, entity_id in ids.items()
            ]
        except Refusal:
            return []


def sandbox_router(pages: SandboxPages, member_of: MemberOf) -> Router:
    """Return the router of the sandbox; only an approved partner has one."""
    commands = pages.commands

    async def approved(request: AnyRequest, partner_id: str) -> Member:
        member = await member_of(request, partner_id)
        if member.status != "approved":
            raise Refusal("auth_partner_not_approved")
        return member

    @get("/console/{partner_id:str}/sandbox", opt={"page": "member"})
    async def sandbox(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        return await pages.shown(request, await approved(request, partner_id))

    @post("/console/{partner_id:str}/sandbox/entities/{entity_id:str}", opt={"page": "member"})
    async def drive(
        request: AnyRequest, partner_id: FromPath[str], entity_id: FromPath[str]
    ) -> Response[bytes]:
        member = await approved(request, partner_id)
        form = await read_form(request)
        change = {"connect": commands.connect, "disconnect": commands.disconnect}.get(
            form.get("to", "")
        )
        if change is None:
            raise invalid("to", "expected connect or disconnect")
        if "\0" in entity_id:
            raise Refusal("sandbox_entity_not_found")
        cause = member_cause(request, member.person)
        await change(partner_id, member.sandbox_epoch, entity_id, cause)
        return lead_to(f"{member.path}/sandbox")

    @get("/console/{partner_id:str}/sandbox/reset", opt={"page": "member"})
    async def confirm(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await approved(request, partner_id)
        return console_page(request, member, "sandbox", "console/sandbox_reset.html")

    @post("/console/{partner_id:str}/sandbox/reset", opt={"page": "member"})
    async def reset(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await approved(request, partner_id)
        form = await read_form(request)
        # The epoch that the page was about: sent twice, the form begins one anew, not two.
        if form.get("epoch") == str(member.sandbox_epoch + 1):
            cause = member_cause(request, member.person)
            await commands.reset(partner_id, member.sandbox_epoch + 1, cause)
        return lead_to(f"{member.path}/sandbox")

    return Router("/", route_handlers=[sandbox, drive, confirm, reset])
