"""Sessions on the server: a random token in a cookie, of which only the SHA-256 is stored."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from service.core.clock import Clock
from service.core.ids import NewId
from service.facts.people import person_id
from service.ledger.database import Connection, Database
from service.ledger.encryption import KeyUnknown, MasterKeys
from service.ledger.service_keys import token_hash
from service.ledger.sql import queries

LIFETIME: Final = timedelta(hours=12)
TOKEN_BYTES: Final = 32

_SQL = queries("service.people")


class Person(NamedTuple):
    """A signed-in person. `address_hash` is the keyed look-up of the folded email address, hex."""

    email: str
    address_hash: str
    session_id: str

    @property
    def person_id(self) -> str:
        """The id by which events name this person: it reveals nothing without the look-up key."""
        return person_id(self.address_hash)


class Session(NamedTuple):
    """A new session. `token` goes into the cookie and is kept nowhere else."""

    token: str
    person: Person


@dataclass(frozen=True, slots=True)
class Sessions:
    """Begins, reads and ends sessions, in the schema of the ledger of accounts."""

    accounts: Database
    master_keys: MasterKeys
    clock: Clock
    new_id: NewId

    async def begin(self, connection: Connection, email: str, address_hash: bytes) -> Session:
        """Begin a session of 12 hours, in the caller's transaction."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        session_id = self.new_id("ses", self.clock())
        wrapped = self.master_keys.wrap(email.encode(), session_id.encode())
        await connection.execute(
            _SQL.session_begin.on(self.accounts.schema),
            token_hash(token),
            session_id,
            address_hash,
            wrapped,
            self.master_keys.newest,
            LIFETIME,
        )
        return Session(token, Person(email, address_hash.hex(), session_id))

    async def read(self, token: str) -> Person | None:
        """Return who is signed in; None for a session that ended, expired or never was."""
        row = await self.accounts.reads.fetchrow(_SQL.session_read, token_hash(token))
        if row is None:
            return None
        try:
            email = self.master_keys.unwrap(
                row["wrapped"], row["master_key_id"], row["session_id"].encode()
            )
        except KeyUnknown:  # its master key was retired: signing in again mends it
            return None
        return Person(email.decode(), row["address_hash"].hex(), row["session_id"])

    async def end(self, token: str) -> None:
        """End a session."""
        await self.accounts.writes.fetch(_SQL.session_end, token_hash(token))

    async def forget(self, address_hash: bytes) -> None:
        """Delete a person's sessions and sign-in links, with the address that they hold.

        The links come first, which waits for whoever is redeeming one. The sessions are a statement
        of their own, which sees the session that began meanwhile.
        """
        schema = self.accounts.schema
        async with self.accounts.writes.transaction() as connection:
            await connection.execute(_SQL.forget_links.on(schema), address_hash)
            await connection.execute(_SQL.forget_sessions.on(schema), address_hash)

    async def end_all(self, address_hash: str) -> None:
        """End every session of a person, on every machine."""
        await self.accounts.writes.fetch(_SQL.session_end_all, bytes.fromhex(address_hash))
