"""Sessions on the server: a random token in a cookie, of which only the SHA-256 is stored.

The person's address is encrypted in the row and bound to the row's other columns. Whoever can write
to the table and has no master key cannot make a session, prolong one, give it to somebody else, or
put another token in its place: an altered row is no session. One that ended has nothing left to
open.
"""

import secrets
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from service.core.clock import Clock
from service.core.ids import NewId
from service.facts.passkeys import passkeys_stream
from service.facts.people import person_id
from service.ledger.database import Connection, Database, LedgerError, Row, always
from service.ledger.effects import effect_lock
from service.ledger.encryption import BoundColumns, KeyUnknown, MasterKeys, bound_row
from service.ledger.service_keys import token_hash
from service.ledger.sql import queries

LIFETIME: Final = timedelta(hours=12)
FRESH: Final = timedelta(minutes=10)
"""How long a proof of who somebody is counts for what asks for one again."""
SEEN_EVERY: Final = timedelta(minutes=1)
"""How often it is recorded that a session is in use."""
MARK_LIFETIME: Final = timedelta(days=180)
"""How long a browser keeps the mark of whoever signed in there (service/people/marks.py)."""
KEPT: Final = timedelta(days=1)
"""How long sessions and sign-in links are kept after their end: pages say that they are over."""
ROWS_MAX: Final = 5_000
"""Rows deleted by one statement, so that none takes long."""
FORGET_SECONDS_MAX: Final = 30.0
"""Longer than a mail that is being sent may take: forgetting a person waits for it."""
LISTED_MAX: Final = 50
TOKEN_BYTES: Final = 32

BOUND: Final = (
    *("token_hash", "session_id", "address_hash", "person_id", "started_at", "expires_at"),
    "seen_at",
)
"""Columns that a session's row is bound to: all but the box itself, the id of the master key that
opens it, and `ended_at`, with which the box goes."""

_SQL = queries("service.people")
_LOCK = queries("service.ledger").lock


async def now(connection: Connection, schema: str) -> datetime:
    """Return the time of a transaction, by the database's clock."""
    at: datetime | None = await connection.fetchval(_SQL.now.on(schema))
    return always(at)


def bound_to(row: BoundColumns) -> bytes:
    """Return what the address in a session's row is bound to."""
    return bound_row("sessions", row, BOUND)


class SignInPlace(NamedTuple):
    """From where a session was begun: the network's address, and what the browser calls itself."""

    network: str = ""
    browser: str = ""


NOWHERE: Final = SignInPlace()
"""For sessions that no browser began."""


class Kept(msgspec.Struct, frozen=True):
    """What is encrypted in a session's row."""

    email: str
    by_passkey: bool
    network: str
    browser: str
    forms: str = ""


class Person(NamedTuple):
    """A signed-in person. `address_hash` is the keyed look-up of the folded email address, hex.

    `by_passkey`: they proved who they are with a passkey; `is_fresh`: within the last minutes, in
    either way. `ends_at` is when their session does at the latest; None where there is none.
    `forms` is what their forms' token is made from. A session that a proof renewed keeps it, so
    that pages in other tabs work on.
    """

    email: str
    address_hash: str
    session_id: str
    by_passkey: bool = False
    is_fresh: bool = False
    ends_at: datetime | None = None
    forms: str = ""

    @property
    def person_id(self) -> str:
        """The id by which events name this person: it reveals nothing without the look-up key."""
        return person_id(self.address_hash)


class Session(NamedTuple):
    """A new session. `token` goes into the cookie and is kept nowhere else."""

    token: str
    person: Person
    started_at: datetime


class OpenSession(NamedTuple):
    """A session that holds, as it is listed."""

    session_id: str
    started_at: datetime
    seen_at: datetime
    kept: Kept


@dataclass(frozen=True, slots=True)
class Sessions:
    """Begins, reads and ends sessions, in the schema of the ledger of accounts."""

    accounts: Database
    master_keys: MasterKeys
    clock: Clock
    new_id: NewId
    _: KW_ONLY
    idle: timedelta
    """A session ends when it was not used for so long."""

    async def begin(
        self,
        connection: Connection,
        email: str,
        address_hash: bytes,
        place: SignInPlace = NOWHERE,
        *,
        by_passkey: bool = False,
        ends_at: datetime | None = None,
        forms: str = "",
    ) -> Session:
        """Begin a session of 12 hours, or until `ends_at`, in the caller's transaction."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        session_id = self.new_id("ses", self.clock())
        schema = self.accounts.schema
        # The database's clock, by which sessions end, in hand before the row is sealed.
        started_at = await now(connection, schema)
        ends_at = ends_at or started_at + LIFETIME
        forms = forms or session_id
        person = Person(email, address_hash.hex(), session_id, by_passkey, True, ends_at, forms)
        ids = (token_hash(token), session_id, address_hash, person.person_id)
        values = (*ids, started_at, ends_at)
        bound = bound_to(dict[str, object](zip(BOUND, (*values, None), strict=True)))
        kept = msgspec.json.encode(Kept(email, by_passkey, *place, forms))
        wrapped = self.master_keys.wrap(kept, bound)
        await connection.execute(
            _SQL.session_begin.on(schema), *values, wrapped, self.master_keys.newest
        )
        return Session(token, person, started_at)

    async def renew(self, token: str, person: Person, place: SignInPlace) -> Session | None:
        """Begin a session of whoever just used a passkey, in place of the one they had.

        It ends when that one would have: whoever has a passkey and not the mailbox cannot stay.
        None if that one has ended meanwhile: of two calls with one proof, one gets a session.
        """
        async with self.accounts.writes.transaction() as connection:
            ended = await connection.fetchrow(
                _SQL.session_end.on(self.accounts.schema), token_hash(token)
            )
            if ended is None:
                return None
            address_hash = bytes.fromhex(person.address_hash)
            return await self.begin(
                connection,
                *(person.email, address_hash, place),
                by_passkey=True,
                ends_at=person.ends_at,
                forms=person.forms,
            )

    async def read(self, token: str) -> Person | None:
        """Return who is signed in; None for a session that ended, was altered or never was.

        One that was not used for too long has ended, too.
        """
        hashed = token_hash(token)
        row = await self.accounts.reads.fetchrow(_SQL.session_read, hashed, self.idle, FRESH)
        kept = self._opened(row) if row else None
        if row is None or kept is None:
            return None
        if row["unseen"] > SEEN_EVERY:
            with suppress(LedgerError):  # reading pages goes on where nothing can be written
                await self._seen(row, kept)
        address_hash: str = row["address_hash"].hex()
        session_id: str = row["session_id"]
        how = (kept.by_passkey, row["is_fresh"], row["expires_at"], kept.forms or session_id)
        return Person(kept.email, address_hash, session_id, *how)

    async def of(self, person_id: str) -> list[OpenSession]:
        """Return the sessions of a person that hold, newest first."""
        rows = await self.accounts.reads.fetch(_SQL.session_list, person_id, self.idle, LISTED_MAX)
        opened = ((row, self._opened(row)) for row in rows)
        return [
            OpenSession(
                row["session_id"], row["started_at"], row["seen_at"] or row["started_at"], kept
            )
            for row, kept in opened
            if kept is not None
        ]

    async def _seen(self, row: Row, kept: Kept) -> None:
        """Record that a session is in use, and seal its row anew."""
        seen_at: datetime = row["read_at"]
        values = [row[name] for name in BOUND[:-1]]
        bound = bound_to(dict[str, object](zip(BOUND, (*values, seen_at), strict=True)))
        wrapped = self.master_keys.wrap(msgspec.json.encode(kept), bound)
        before = (row["token_hash"], row["wrapped"])
        newest = self.master_keys.newest
        await self.accounts.writes.fetch(_SQL.session_seen, *before, seen_at, wrapped, newest)

    def _opened(self, row: Row) -> Kept | None:
        """Return what a session's row holds; None where signing in again mends it."""
        try:
            raw = self.master_keys.unwrap(row["wrapped"], row["master_key_id"], bound_to(row))
            return msgspec.json.decode(raw, type=Kept)
        except KeyUnknown:  # altered; or its master key was retired: signing in again mends it
            return None

    async def end(self, token: str) -> None:
        """End a session."""
        await self.accounts.writes.fetch(_SQL.session_end, token_hash(token))

    async def end_one(self, person_id: str, session_id: str) -> None:
        """End one of a person's sessions."""
        await self.accounts.writes.fetch(_SQL.session_end_one, person_id, session_id)

    async def end_others(self, person_id: str, session_id: str = "") -> None:
        """End every session of a person, except this one if it is given."""
        async with self.accounts.writes.transaction() as connection:
            await self.end_in(connection, person_id, but=session_id)

    async def end_in(
        self, connection: Connection, person_id: str, only: str | None = None, *, but: str = ""
    ) -> int:
        """End a person's sessions in the caller's transaction; return how many of them held.

        First wait for whoever is renewing a session. The statement after that sees the new one.
        All of them together end the marks of the person's browsers, too.
        """
        schema = self.accounts.schema
        await connection.execute(_SQL.hold_sessions.on(schema), person_id)
        if only is None and not but:
            await connection.execute(_SQL.sign_out_note.on(schema), person_id)
        sql, session_id = (
            (_SQL.session_end_others, but) if only is None else (_SQL.session_end_one, only)
        )
        rows = await connection.fetch(sql.on(schema), person_id, session_id)
        return sum(self._held(row) for row in rows)

    def _held(self, row: Row) -> bool:
        """Return whether a session that has just ended would have held otherwise."""
        unused: timedelta = row["ended_at"] - (row["seen_at"] or row["started_at"])
        return row["expires_at"] > row["ended_at"] and unused < self.idle

    async def is_known(self, person_id: str) -> bool:
        """Return whether somebody with this id was signed in lately."""
        row = always(await self.accounts.reads.fetchrow(_SQL.session_known, person_id))
        return row["known"]

    async def delete_expired(self) -> int:
        """Delete what is long over, whoever's it is; return how many rows. Raises LedgerError.

        Sign-outs are deleted when no mark from before them is valid any more.
        """
        total = 0
        for statement, kept in (
            (_SQL.expired_sessions, KEPT),
            (_SQL.expired_links, KEPT),
            (_SQL.expired_sign_outs, MARK_LIFETIME),
        ):
            rows = ROWS_MAX
            while rows == ROWS_MAX:
                background = self.accounts.background
                rows = always(await background.fetchrow(statement, kept, ROWS_MAX))["deleted"]
                total += rows
        return total

    async def forget(self, address_hash: bytes) -> None:
        """Delete a person's sessions and sign-in links, with the address that they hold.

        Marks of their browsers end.

        First wait for mail to them that is being sent, and for whoever is redeeming a link, or
        renewing a session. The sessions are deleted by a statement of their own, which sees the
        session that began meanwhile.
        """
        schema, whose = self.accounts.schema, person_id(address_hash.hex())
        async with self.accounts.background.transaction(FORGET_SECONDS_MAX) as connection:
            await connection.execute(f"set local lock_timeout = '{FORGET_SECONDS_MAX}s'")
            await connection.execute(_LOCK.on(schema), [effect_lock(passkeys_stream(whose))])
            await connection.execute(_SQL.forget_links.on(schema), address_hash)
            await connection.execute(_SQL.hold_sessions.on(schema), whose)
            await connection.execute(_SQL.sign_out_note.on(schema), whose)
            await connection.execute(_SQL.forget_sessions.on(schema), address_hash)
