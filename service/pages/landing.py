"""Where a signed-in person belongs: what the front page offers, and where signing in leads."""

from typing import NamedTuple

from service.ledger.database import Database
from service.ledger.sql import queries

_SQL = queries("service.pages")


class Places(NamedTuple):
    """What a person is beside a customer; a customer's account is everybody's."""

    is_staff: bool
    is_member: bool

    @property
    def home(self) -> str:
        """Where they go when they were on the way to nothing else."""
        if self.is_staff:
            return "/backoffice"
        return "/console" if self.is_member else "/account"


class LandingReader:
    """Reads the ledger of accounts."""

    def __init__(self, database: Database) -> None:
        """`database` is that of the ledger of accounts."""
        self._database = database

    async def of(self, address_hash: str) -> Places:
        """Return the places of a person, by the keyed hash of the e-mail address."""
        row = await self._database.fetchrow(_SQL.places, bytes.fromhex(address_hash))
        return Places(**dict(row)) if row else Places(is_staff=False, is_member=False)
