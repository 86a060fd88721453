"""Who may see a page: one guard enforces what each `Page` declares."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple

from litestar import Request
from litestar.handlers import BaseRouteHandler

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.core.visitors import is_visited_by
from service.http.bodies import AnyRequest
from service.http.client_address import network_of
from service.http.rate_limit.limiter import RateLimiter
from service.ledger.events import Cause
from service.ledger.service_keys import token_hash
from service.pages.site_map import Page
from service.pages.visit import AnyConnection, ProofNeeded, SignInNeeded, read_form, signed_in
from service.partners.commands import PartnerCommands
from service.people.sessions import Person
from service.people.staff import StaffCommands

PageGuard = Callable[[AnyConnection, BaseRouteHandler], Awaitable[None]]


class Member(NamedTuple):
    """A signed-in person of a partner's team, and their partner as it is now."""

    partner_id: str
    partner_name: str
    status: str
    member_id: str
    person: Person
    return_link: bool
    suppress_email: bool
    sandbox_epoch: int
    applied_at: datetime

    @property
    def path(self) -> str:
        """Where this partner's console begins."""
        return f"/console/{self.partner_id}"


def page_guard(
    partners: PartnersReader,
    commands: PartnerCommands,
    staff: StaffCommands,
    limiter: RateLimiter,
    *,
    staff_by_passkey: bool,
) -> PageGuard:
    """Return the guard of all pages. It looks everything up anew at every request.

    Who is staff, or of a partner's team, and what the partner may follows from events: a row makes
    nobody either, and no partner approved.

    Raises SignInNeeded, and ProofNeeded where the team's pages are asked for without a passkey
    (`staff_by_passkey`); refuses with `not_member`, for a partner of other people as for one that
    does not exist, `auth_partner_not_approved` and `not_staff`; with `rate_limited` whoever sends
    too many forms or opens too many pages, unless they are the team's; and too many forms by one
    link, or from a network by links.
    """

    async def guard(connection: AnyConnection, handler: BaseRouteHandler) -> None:
        page: Page = handler.opt["page"]
        if page.who in {"public", "token"}:
            await _charge_link(limiter, connection, page)
            return
        person, state = signed_in(connection), connection.scope["state"]
        if page.who != "staff":
            await _charge(limiter, connection, person.person_id)
        if page.who in {"member", "approved"}:
            partner_id: str = connection.path_params["partner_id"]
            member = await _member(partners, partner_id, person)
            partner = await commands.look(partner_id)
            known = partner.members.get(member.member_id)
            if known is None or known.email_hash != person.address_hash:
                raise Refusal("not_member")
            member = member._replace(
                status=partner.status,
                return_link=partner.return_link,
                suppress_email=partner.suppress_email,
                sandbox_epoch=partner.sandbox_epoch,
            )
            if page.who == "approved" and member.status != "approved":
                raise Refusal("auth_partner_not_approved")
            state["member"] = member
            # However many people a partner has, and however many partners a person works for.
            is_visited_by(f"person {person.person_id}", f"partner {partner_id}")
        elif page.who == "staff":
            staff_id = await staff.by_address(person.address_hash)
            if staff_id is None:
                await _charge(limiter, connection, person.person_id)
                raise Refusal("not_staff")
            if staff_by_passkey and not person.by_passkey:
                raise ProofNeeded
            state["staff_id"] = staff_id

    return _keeping_forms(guard)


def _keeping_forms(guard: PageGuard) -> PageGuard:
    """Return a guard that reads a form before its sender is led away: it waits for them.

    And before somebody is refused: the form may be of who was signed in when its page was opened.
    """

    async def keeping(connection: AnyConnection, handler: BaseRouteHandler) -> None:
        try:
            await guard(connection, handler)
        except (SignInNeeded, ProofNeeded, Refusal) as reason:
            is_limited = isinstance(reason, Refusal) and reason.code == "rate_limited"
            if isinstance(connection, Request) and not is_limited:
                await read_form(connection)
            raise

    return keeping


async def _charge_link(limiter: RateLimiter, connection: AnyConnection, page: Page) -> None:
    """Charge a form to the link that it is sent by, and to its network, which may have many."""
    if page.who == "token" and _is_form(connection) and not page.charges_itself:
        # The network first: links can be guessed, and each would have a window of its own.
        await _charge(limiter, connection, f"network {network_of(connection.scope)}")
        link = token_hash(connection.path_params["token"]).hex()
        await _charge(limiter, connection, f"link {link}")


def _is_form(connection: AnyConnection) -> bool:
    return connection.scope.get("method") == "POST"


async def _charge(limiter: RateLimiter, connection: AnyConnection, payer: str) -> None:
    """Charge a form to whoever sent it: each may be an event, which is kept for ever; or a page."""
    charge = limiter.charge_post if _is_form(connection) else limiter.charge_page
    allowance = await charge(payer)
    if not allowance.admitted:
        raise Refusal("rate_limited", retry_after_seconds=allowance.retry_after_seconds)


def member_of(request: AnyRequest) -> Member:
    """Return the member who requested a page of a partner's console."""
    return request.scope["state"]["member"]


def staff_of(request: AnyRequest) -> str:
    """Return the staff id of whoever requested a page of the back office."""
    return request.scope["state"]["staff_id"]


def member_cause(request: AnyRequest) -> Cause:
    """Return the cause of the events that a partner's people trigger."""
    return _cause(request, f"member:{signed_in(request).person_id}")


def staff_cause(request: AnyRequest) -> Cause:
    """Return the cause of the events that the team triggers."""
    return _cause(request, f"staff:{staff_of(request)}")


def customer_cause(request: AnyRequest, customer_id: str) -> Cause:
    """Return the cause of a customer's events; `customer_id` is their entity's or person's id."""
    return _cause(request, f"customer:{customer_id}")


def _cause(request: AnyRequest, actor: str) -> Cause:
    return Cause(actor, request.scope["state"]["request_id"])


async def _member(partners: PartnersReader, partner_id: str, person: Person) -> Member:
    row = await partners.member(partner_id, person.address_hash)
    if row is None:
        raise Refusal("not_member")
    values = dict(row)
    return Member(person=person, partner_name=values.pop("name"), **values)
