"""`/`: the home page, and where a signed-in person belongs, to which signing in leads, too."""

from typing import NamedTuple

from litestar import get

from service.http.bodies import AnyRequest
from service.http.router import OneOffRouter
from service.ledger.database import Database
from service.ledger.sql import queries
from service.pages.shell import page
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


async def landing_of(accounts: Database, person: Person) -> Landing:
    """Return which areas a person belongs to; `accounts` is the database of that ledger."""
    row = await accounts.reads.fetchrow(_SQL.landing, bytes.fromhex(person.address_hash))
    return Landing(**dict(row)) if row else Landing(is_staff=False, is_member=False)


def home_router(accounts: Database) -> OneOffRouter:
    """Return the router of the first page."""

    @get("/", opt={"page": Page("public")})
    async def home(request: AnyRequest) -> Html:
        """Introduce the service, and link to each area."""
        person = person_of(request)
        landing = await landing_of(accounts, person) if person else None
        return page(request, "home.html", landing=landing)

    return OneOffRouter("/", route_handlers=[home])
