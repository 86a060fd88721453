"""What every page of the console stands in: whose it is, who may see it, where else to go."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

from litestar import Response

from projections.partners.reader import PartnersReader
from service.core.errors import Refusal
from service.http.bodies import AnyRequest
from service.ledger.events import Cause
from service.pages.shell import page
from service.pages.visit import signed_in
from service.people.person import Person

NAVIGATION: Final = (
    ("requests", "calls.nav"),
    ("usage", "usage.nav"),
    ("claims", "partner_claims.nav"),
    ("links", "links.nav"),
    ("onboardings", "onboardings.nav"),
    ("sandbox", "sandbox.nav"),
    ("tutorial", "tutorial.nav"),
    ("checklist", "checklist.nav"),
    ("keys", "console.nav.keys"),
    ("settings", "console.nav.settings"),
    ("team", "console.nav.team"),
)
"""The console's places, in this order: the path under `/console/<partner id>/`, and its text.

Only an approved partner has a sandbox, and is led to it."""


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


MemberOf = Callable[[AnyRequest, str], Awaitable[Member]]
"""Answers who asks, as a member of the partner named; raises SignInNeeded.

Refuses with `not_member`, for a partner of other people as for one that does not exist.
"""


def member_gate(partners: PartnersReader) -> MemberOf:
    """Return the console's gate: each page asks it first, with the partner id of its path."""

    async def member_of(request: AnyRequest, partner_id: str) -> Member:
        person = signed_in(request)
        row = await partners.member(partner_id, person.address_hash)
        if row is None:
            raise Refusal("not_member")
        return Member(
            row["partner_id"],
            row["name"],
            row["status"],
            row["member_id"],
            person,
            row["return_link"],
            row["suppress_email"],
            row["sandbox_epoch"],
            row["applied_at"],
        )

    return member_of


def member_cause(request: AnyRequest, person: Person) -> Cause:
    """Return the cause that events of a partner's people name (decision 8)."""
    return Cause(f"member:{person.person_id}", request.scope["state"]["request_id"])


def console_page(
    request: AnyRequest,
    member: Member,
    here: str,
    template: str,
    status: int = 200,
    **context: Any,  # noqa: ANN401 - a page's values are anything
) -> Response[bytes]:
    """Return a page that extends `console/layout.html`; `here` is its place in the navigation."""
    places = [one for one in NAVIGATION if one[0] != "sandbox" or member.status == "approved"]
    return page(request, template, status, member=member, here=here, navigation=places, **context)
