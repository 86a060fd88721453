"""Marks of browsers in which somebody has signed in, by which they are told from strangers.

Anybody can ask for anybody's sign-in links; whoever has a mark of the address is counted apart from
all others, by the mark. Each sign-in makes a mark of its own, so that no browser uses up another's
links. Nothing is stored of it: it is a random id and the moment, under a MAC that binds both to the
address. It ends after half a year, or when its person signs out everywhere.
"""

import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from service.facts.people import person_id
from service.ledger.database import Database, always
from service.ledger.service_keys import Secrets, ServiceKeyStore
from service.ledger.sql import queries
from service.people.sessions import MARK_LIFETIME, Session

_ID_BYTES: Final = 16
_MARK: Final = re.compile(r"([A-Za-z0-9_-]{22})\.([0-9]{1,16})\.([A-Za-z0-9]{43})")
_PURPOSE: Final = "signed-in-before"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_SQL = queries("service.people")


class Mark(NamedTuple):
    """A mark that this service made of a person's address; it may have ended."""

    mark_id: str
    person_id: str
    made_at: datetime


def mark_text(keys: Secrets, address_hash: str, made_at: datetime) -> str:
    """Return a new mark of an address, by its look-up, as a browser keeps it."""
    mark_id, at = secrets.token_urlsafe(_ID_BYTES), (made_at - _EPOCH) // _MICROSECOND
    return f"{mark_id}.{at}.{_mac(keys, address_hash, mark_id, at)}"


def _mac(keys: Secrets, address_hash: str, mark_id: str, at: int) -> str:
    return keys.link_token(_PURPOSE, f"{address_hash} {mark_id} {at}")


@dataclass(frozen=True, slots=True)
class Marks:
    """Makes and checks marks. `accounts` is the database of that ledger."""

    accounts: Database
    secrets: ServiceKeyStore

    async def of(self, session: Session) -> str:
        """Return a new mark for the browser in which a session has just begun."""
        keys = await self.secrets.get()
        return mark_text(keys, session.person.address_hash, session.started_at)

    async def read(self, given: str | None, email: str) -> Mark | None:
        """Return the mark that a browser has of an address; None for what this service never made.

        Asks no database: whoever has a mark can be charged before its end is looked up.
        """
        found = _MARK.fullmatch(given or "")
        if found is None:
            return None
        mark_id, at, mac = found[1], int(found[2]), found[3]
        keys = await self.secrets.get()
        address_hash = keys.lookup_email(email)
        if not hmac.compare_digest(mac, _mac(keys, address_hash, mark_id, at)):
            return None
        return Mark(mark_id, person_id(address_hash), _EPOCH + at * _MICROSECOND)

    async def holds(self, mark: Mark) -> bool:
        """Return whether a mark has not ended, by the database's clock."""
        values = (mark.person_id, mark.made_at, MARK_LIFETIME)
        return always(await self.accounts.reads.fetchrow(_SQL.mark_holds, *values))["holds"]
