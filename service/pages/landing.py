"""Where a signed-in person belongs: what the home page offers, and where signing in leads."""

from typing import NamedTuple

from service.ledger.database import Database
from service.ledger.sql import queries

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


class LandingReader:
    """Reads the ledger of accounts."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger of accounts."""
        self._database = database

    async def of(self, address_hash: str) -> Landing:
        """Return where a person belongs, by the keyed hash of the e-mail address."""
        row = await self._database.fetchrow(_SQL.landing, bytes.fromhex(address_hash))
        return Landing(**dict(row)) if row else Landing(is_staff=False, is_member=False)
