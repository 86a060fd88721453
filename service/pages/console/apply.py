"""`/console`: which partner, applying for one, and the state of its review."""

from litestar import Response, Router, get, post
from litestar.params import FromPath

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.pages.console.frame import MemberOf, console_page, member_cause
from service.pages.shell import lead_to, page
from service.pages.visit import read_form, signed_in
from service.partners.commands import PartnerCommands
from service.partners.wire import ConsoleApplication

_NOTHING = dict.fromkeys(ConsoleApplication.__struct_fields__, "")


def apply_router(
    commands: PartnerCommands, partners: PartnersReader, member_of: MemberOf
) -> Router:
    """Return the router of the console's first pages."""

    @get("/console", opt={"page": "signed-in"})
    async def start(request: AnyRequest) -> Response[bytes]:
        mine = await partners.partners_of(signed_in(request).address_hash)
        if not mine:
            return page(request, "console/apply.html", values=_NOTHING, faults={})
        if len(mine) == 1:
            return lead_to(f"/console/{mine[0]['partner_id']}")
        return page(request, "console/partners.html", partners=mine)

    @get("/console/partners", opt={"page": "signed-in"})
    async def choose(request: AnyRequest) -> Response[bytes]:
        mine = await partners.partners_of(signed_in(request).address_hash)
        return page(request, "console/partners.html", partners=mine)

    @get("/console/apply", opt={"page": "signed-in"})
    async def ask(request: AnyRequest) -> Response[bytes]:
        signed_in(request)
        return page(request, "console/apply.html", values=_NOTHING, faults={})

    @post("/console/apply", opt={"page": "signed-in"})
    async def apply(request: AnyRequest) -> Response[bytes]:
        person = signed_in(request)
        form = await read_form(request)
        given = {name: form.get(name, "") for name in _NOTHING}
        try:
            asked = check(ConsoleApplication, **given)
        except Refusal as refusal:
            faults = dict(refusal.field_errors or {})
            return page(request, "console/apply.html", 400, values=given, faults=faults)
        partner_id = await commands.apply(
            company=asked.company,
            contact_name=asked.contact_name,
            use=asked.use,
            email=person.email,
            cause=member_cause(request, person),
        )
        return lead_to(f"/console/{partner_id}")

    @get("/console/{partner_id:str}", opt={"page": "member"})
    async def overview(request: AnyRequest, partner_id: FromPath[str]) -> Response[bytes]:
        member = await member_of(request, partner_id)
        partner = await commands.look(partner_id)
        return console_page(request, member, "", "console/overview.html", partner=partner)

    return Router("/", route_handlers=[start, choose, ask, apply, overview])
