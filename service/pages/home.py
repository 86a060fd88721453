"""`/`: the home page, and where a signed-in person belongs, to which signing in leads, too."""

from typing import NamedTuple

from litestar import get

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Database
from service.ledger.sql import queries
from service.pages.shell import lead_to, page
from service.pages.site_map import Html, Page
from service.pages.visit import person_of
from service.people.sessions import Person

_SQL = queries("service.pages")


class Landing(NamedTuple):
    """What a person is besides a customer; everybody has a customer's account."""

    is_staff: bool
    is_member: bool

    @property
    def home(self) -> str:
        """The path that signing in leads to where no other was asked for."""
        if self.is_staff:
            return "/backoffice"
        return "/console" if self.is_member else "/account"


class Landings(NamedTuple):
    """Looks up where people belong. `accounts` is the database of that ledger."""

    accounts: Database
    has_backoffice: bool = True
    """Whether the back office is at the same origin."""

    async def of(self, person: Person) -> Landing:
        """Return which areas a person belongs to, of those at this origin."""
        row = await self.accounts.reads.fetchrow(_SQL.landing, bytes.fromhex(person.address_hash))
        landing = Landing(**dict(row)) if row else Landing(is_staff=False, is_member=False)
        return landing._replace(is_staff=landing.is_staff and self.has_backoffice)

    async def home(self, person: Person) -> str:
        """Return the path that signing in leads a person to where they asked for no other."""
        return (await self.of(person)).home


def backoffice_home_router() -> OneOffRouter:
    """Return the router of the first page where the back office has an origin of its own."""

    @get("/", opt={"page": Page("public")})
    async def home() -> Html:
        """Lead to the back office."""
        return lead_to("/backoffice")

    return OneOffRouter("/", route_handlers=[home])


def home_router(landings: Landings) -> OneOffRouter:
    """Return the router of the first page."""

    @get("/", opt={"page": Page("public")})
    async def home(request: AnyRequest) -> Html:
        """Introduce the service, and link to each area."""
        person = person_of(request)
        landing = await landings.of(person) if person else None
        return page(request, "home.html", landing=landing)

    return OneOffRouter("/", route_handlers=[home])
