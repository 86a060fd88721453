"""`/console`: choosing a partner, and applying for an account."""

from collections.abc import Mapping, Sequence

from litestar import get, post

from projections.partners.reader import PARTNERS_MAX, PartnersReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.http.decoding import check
from service.http.router import OneOffRouter
from service.ledger.database import Row
from service.pages.gate import member_cause
from service.pages.shell import faults_of, lead_to, page
from service.pages.site_map import Html, Page
from service.pages.visit import form_of, signed_in
from service.partners.commands import PartnerCommands
from service.partners.wire import ConsoleApplication, website_of

_NOTHING = dict.fromkeys(ConsoleApplication.__struct_fields__, "")


def apply_router(commands: PartnerCommands, partners: PartnersReader) -> OneOffRouter:
    """Return the router of the console's first pages."""

    @get("/console", opt={"page": Page("signed-in")})
    async def start(request: AnyRequest) -> Html:
        """Lead to the person's partner, or to applying for one."""
        mine = await partners.partners_of(signed_in(request).address_hash)
        own = [one for one in mine if one["is_own"]]
        if len(own) == 1:
            return lead_to(f"/console/{own[0]['partner_id']}")
        return _listed(request, mine) if mine else _form(request)

    @get("/console/partners", opt={"page": Page("signed-in")})
    async def choose(request: AnyRequest) -> Html:
        """List the person's partners."""
        return _listed(request, await partners.partners_of(signed_in(request).address_hash))

    @get("/console/apply", opt={"page": Page("signed-in")})
    async def ask(request: AnyRequest) -> Html:
        """Ask who the partner is, and what they will use the API for."""
        return _form(request)

    @post("/console/apply", opt={"page": Page("signed-in")})
    async def apply(request: AnyRequest) -> Html:
        """Apply for a partner account."""
        form = form_of(request)
        given = {name: form.get(name, "") for name in _NOTHING}
        try:
            application = check(
                ConsoleApplication, **given | {"website": website_of(given["website"])}
            )
        except Refusal as refusal:
            return _form(request, 400, given, faults_of(refusal))
        partner_id = await commands.apply(
            company=application.company,
            contact_name=application.contact_name,
            use=application.use,
            website=application.website or None,
            company_number=application.company_number or None,
            email=signed_in(request).email,
            cause=member_cause(request),
        )
        return lead_to(f"/console/{partner_id}")

    return OneOffRouter("/", route_handlers=[start, choose, ask, apply])


def _listed(request: AnyRequest, mine: Sequence[Row]) -> Html:
    shown = mine[:PARTNERS_MAX]
    return page(
        request,
        "console/partners.html",
        own=[one for one in shown if one["is_own"]],
        others=[one for one in shown if not one["is_own"]],
        has_more=len(mine) > len(shown),
        listed_max=PARTNERS_MAX,
    )


def _form(
    request: AnyRequest,
    status: int = 200,
    values: Mapping[str, str] = _NOTHING,
    faults: Mapping[str, Sequence[str]] | None = None,
) -> Html:
    return page(request, "console/apply.html", status, values=values, faults=faults or {})
