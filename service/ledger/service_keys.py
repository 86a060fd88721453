"""The service's own secrets, wrapped by the master keys, stored in the ledger of accounts.

One ring of master keys protects them all, so a new installation needs no other secret.
"""

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol

import structlog

from service.core.ids import base32, base62
from service.core.shared import Shared
from service.core.visitors import for_everybody
from service.ledger.database import Connection, Database, LedgerError, Row
from service.ledger.encryption import KEY_BYTES, KeyGone, KeyUnknown, MasterKeys
from service.ledger.event_macs import FIRST_KEY, EventKeys, key_of_ledger
from service.ledger.sql import queries

_SQL = queries("service.ledger")
NAMES: Final = ("pepper", "link", "lookup")
"""Of the secrets, but for those of events."""
EVENT_KEY_IDS: Final = 256
"""A MAC begins with the key's id, in a byte."""
REREAD_SECONDS: float = 60.0
"""How often a process that works looks whether there are other event keys."""
STALE_SECONDS: float = 240.0
"""A process that has not checked for this long, because it was idle, checks before it continues."""
SIGNS_AFTER: timedelta = timedelta(minutes=5)
"""A new event key signs after this: later than STALE_SECONDS, so that every process knows it."""

_SECRETS_GONE: Final = "the service's own keys are gone"
_EVENT_KEYS_GONE: Final = "the keys that bind events to the service are gone"

log = structlog.get_logger()


class EventKeyRefused(Exception):
    """No event key is added. `str()` tells an operator why."""


class EventRoots(NamedTuple):
    """The keys from which the ledgers' event keys are derived, by their ids (`EventKeys`)."""

    keys: Mapping[int, bytes]
    since_start: bool
    signing: int
    are_all: bool = True

    def of_ledger(self, ledger: str) -> EventKeys:
        """Return the keys of one ledger."""
        keys = {key_id: key_of_ledger(key, ledger) for key_id, key in self.keys.items()}
        return EventKeys(keys, self.since_start, self.signing, self.are_all)


class Secrets(NamedTuple):
    """`pepper` hashes API keys, `link` makes links' tokens, `lookup` finds sealed values.

    `events` bind events to the service.
    """

    pepper: bytes
    link: bytes
    lookup: bytes
    events: EventRoots

    def link_token(self, purpose: str, subject: str) -> str:
        """Return the token of a link: the same again whenever asked (decision 10)."""
        return base62(int.from_bytes(self.derived(purpose, subject), "big"), 43)

    def derived(self, purpose: str, subject: str) -> bytes:
        """Return 32 secret bytes for one use of one thing: the same again whenever asked."""
        return hmac.digest(self.link, f"{purpose}\0{subject}".encode(), hashlib.sha256)

    def lookup_email(self, email: str) -> str:
        """Return the keyed hash by which an email address is found, folded (readings: 422)."""
        return self._lookup("email", email.casefold())

    def lookup_recipient(self, email: str) -> str:
        """Return the keyed hash of an address's mailbox, by which mails to it are counted.

        Case and what follows a plus sign are left out: `who+1@` and `who@` are one mailbox. Dots
        are left out, too: where they distinguish two mailboxes, the two share a count, which harms
        neither.
        """
        local_part, _, domain = email.casefold().rpartition("@")
        mailbox = (local_part.partition("+")[0] or local_part).replace(".", "")
        return self._lookup("recipient", f"{mailbox}@{domain}")

    def lookup_company_number(self, number: str | None) -> str | None:
        """Return the keyed hash by which a company number is found, without spaces and case.

        None if there is no number, or only spaces.
        """
        folded = "".join((number or "").split()).casefold()
        return self._lookup("company-number", folded) if folded else None

    def claim_key(self, partner_id: str, partner_claim_id: str) -> str:
        """Return the part of storage paths that stands for a claim and reveals nothing of it."""
        parts = b"".join(
            len(raw).to_bytes(8, "big") + raw
            for raw in (b"claim-key", partner_id.encode(), partner_claim_id.encode())
        )
        return base32(int.from_bytes(hmac.digest(self.lookup, parts, hashlib.sha256)[:16], "big"))

    def _lookup(self, kind: str, value: str) -> str:
        mac = hmac.digest(self.lookup, f"{kind}\0{value}".encode(), hashlib.sha256)
        return mac.hex()


def lookup_bytes(hexadecimal: str | None) -> bytes | None:
    """Return a keyed hash as it is stored in read models."""
    return None if hexadecimal is None else bytes.fromhex(hexadecimal)


def token_hash(token: str) -> bytes:
    """Return what is stored of a link's token: its SHA-256."""
    return hashlib.sha256(token.encode()).digest()


class GetSecrets(Protocol):
    """Returns the secrets; with `anew`, with the present event keys, or raises LedgerError."""

    async def __call__(self, *, anew: bool = False) -> Secrets: ...  # noqa: D102 - said above


class ServiceKeyStore:
    """Draws the secrets when an installation first uses them, and reads them afterwards."""

    def __init__(self, accounts: Database, master_keys: MasterKeys) -> None:
        """`accounts` is the database of the ledger of accounts."""
        self._accounts = accounts
        self._master_keys = master_keys
        self._loaded: Secrets | None = None
        self._attempt = Shared(self._load)
        self._reading: asyncio.Task[None] | None = None
        self._asked_at = self._read_at = 0.0

    async def get(self, *, anew: bool = False) -> Secrets:
        """Return the secrets: from memory after the first time, unless `anew`.

        Concurrent callers share one attempt, and so its deadline; a caller after its failure begins
        another. A cancelled caller leaves the attempt to the others. New event keys are read in the
        background: only a process that was idle for long waits for them. Raises KeyUnknown if the
        ring lacks the master key that wrapped them, and LedgerError if they, or the present event
        keys, cannot be read.
        """
        if anew:
            await self.read_events()
        if self._loaded is not None:
            now = asyncio.get_running_loop().time()
            if now > self._asked_at + REREAD_SECONDS:
                self._read_events_soon()
            if now > self._read_at + STALE_SECONDS and self._reading is not None:
                await asyncio.shield(self._reading)
            return self._loaded
        return await self._attempt.get()

    async def check(self) -> None:
        """Read and open what a process that starts now would, but for the events' keys.

        It draws nothing. Raises KeyUnknown where such a process could do no work.
        """
        reads = self._accounts.reads
        rows = await reads.fetch(_SQL.service_keys, list(NAMES))
        if rows:
            self._opened(rows)
        elif await reads.fetch(_SQL.any_event):  # else nobody has used the installation
            raise KeyGone(_SECRETS_GONE)

    async def known_events(self) -> EventRoots | None:
        """Return the roots of events' keys, None where an installation has none yet.

        It only reads. Raises KeyUnknown where the ring does not open one of them, or they are gone:
        who can write the table could otherwise keep the others from being used, or all of them.
        """
        reads = self._accounts.reads
        rows = await reads.fetch(_SQL.event_keys)
        if not rows and await self._has_event_keys():
            rows = await reads.fetch(_SQL.event_keys)  # another process may have drawn them by now
            if not rows:
                raise KeyGone(_EVENT_KEYS_GONE)
        return self._roots(rows) if rows else None

    async def next_event_key(self) -> tuple[int, datetime] | None:
        """Return the event key that was drawn and does not sign yet, and from when on it does."""
        rows = await self._accounts.reads.fetch(_SQL.event_keys)
        waiting = [(row["key_id"], row["signs_from"]) for row in rows if not row["may_sign"]]
        return max(waiting, default=None)

    async def _has_event_keys(self) -> bool:
        """Return whether there must be keys of events, going by all else that is stored."""
        if self._loaded is not None:
            return True
        reads = self._accounts.reads
        rows = await reads.fetch(_SQL.service_keys, list(NAMES))
        if not rows:
            return bool(await reads.fetch(_SQL.any_event))
        _, has_event_keys = self._opened(rows)
        return has_event_keys

    async def read_events(self) -> None:
        """Read the event keys again now; keep those that are known where the ring opens no other.

        Those are then not all. Raises LedgerError where they cannot be read: nothing may be taken
        for another's by then.
        """
        try:
            known = await self.known_events()
        except KeyUnknown as error:
            log.warning("event keys not read", error_type=type(error).__name__)
            if self._loaded is not None:
                self._take(self._loaded.events._replace(are_all=False))
            return
        loop = asyncio.get_running_loop()
        self._asked_at = self._read_at = loop.time()
        if known is not None:
            self._take(known)

    def _take(self, events: EventRoots) -> None:
        if self._loaded is None or events == self._loaded.events:
            return  # what is known stays the same object, by which others see that it does
        self._loaded = self._loaded._replace(events=events)

    async def _read_events_beside(self) -> None:
        try:
            await self.read_events()
        except LedgerError as error:
            why = type(error.__cause__ or error).__name__
            log.warning("event keys not read", error_type=why)

    def _read_events_soon(self) -> None:
        if self._reading is None or self._reading.done():
            self._asked_at = asyncio.get_running_loop().time()
            reading = self._read_events_beside()
            self._reading = asyncio.create_task(reading, context=for_everybody())

    async def add_event_key(self, connection: Connection) -> tuple[int, datetime]:
        """Draw the next event key, once the secrets are there, in the caller's transaction.

        Return its id and from when on it signs. Raises EventKeyRefused where the last one does not
        sign yet, or there is no id left.
        """
        schema = self._accounts.schema
        roots = self._roots(await connection.fetch(_SQL.event_keys.on(schema)))
        key_id = max(roots.keys) + 1
        if key_id >= EVENT_KEY_IDS:
            raise EventKeyRefused(f"there are {key_id - 1} event keys, which is all there can be")
        if roots.signing != key_id - 1:
            raise EventKeyRefused(f"event key {key_id - 1} is new and does not sign yet")
        name = event_key_name(key_id, since_start=roots.since_start)
        wrapped = self._master_keys.wrap(secrets.token_bytes(KEY_BYTES), name)
        row = await connection.fetchrow(
            _SQL.event_keys_insert.on(schema),
            *(key_id, roots.since_start, wrapped, self._master_keys.newest, SIGNS_AFTER),
        )
        if row is None:
            raise EventKeyRefused(f"somebody else has just added event key {key_id}")
        return key_id, row["signs_from"]

    def _roots(self, rows: Sequence[Row]) -> EventRoots:
        """Unwrap the roots of events' keys; raises KeyUnknown."""
        keys = {row["key_id"]: self._root(row) for row in rows}
        signing = max((row["key_id"] for row in rows if row["may_sign"]), default=None)
        if signing is None:  # no older key instead: what that signs may be set aside
            raise KeyGone("no event key signs: the time of each (signs_from) is still to come")
        return EventRoots(keys, all(row["since_start"] for row in rows), signing)

    def _opened(self, rows: Sequence[Row]) -> tuple[dict[str, bytes], bool]:
        """Unwrap the secrets; raises KeyUnknown, also where one is gone.

        Return also whether one of them says that there are keys of events.
        """
        by_name = {row["name"]: row for row in rows}
        opened, has_event_keys = dict[str, bytes](), False
        for name in NAMES:
            if name not in by_name:
                raise KeyGone(f"the service's key {name} is gone")
            row = by_name[name]
            newest, before = service_key_names(name)
            wrapped, master = row["wrapped"], row["master_key_id"]
            try:
                opened[name] = self._master_keys.unwrap(wrapped, master, newest)
                has_event_keys = True
            except KeyUnknown:
                opened[name] = self._master_keys.unwrap(wrapped, master, before)
        return opened, has_event_keys

    def _root(self, row: Row) -> bytes:
        name = event_key_name(row["key_id"], since_start=row["since_start"])
        try:
            return self._master_keys.unwrap(row["wrapped"], row["master_key_id"], name)
        except KeyUnknown as error:
            message = f"event key {row['key_id']}: {error}"
            raise KeyUnknown(message, error.master_key_id) from error

    async def _load(self) -> Secrets:
        """Read the secrets, and draw them where nothing is stored: under one deadline."""
        async with self._accounts.writes.connection() as connection:
            rows, event_rows = await self._stored(connection)
            if not rows:
                await self._draw(connection)
                rows, event_rows = await self._stored(connection)
            if not rows:
                raise KeyGone(_SECRETS_GONE)
            opened, has_event_keys = self._opened(rows)
            if not event_rows:
                if has_event_keys:  # a new one would have events count that have no MAC
                    raise KeyGone(_EVENT_KEYS_GONE)
                await self._draw_late(connection)
                event_rows = await connection.fetch(self._event_keys)
        self._loaded = Secrets(**opened, events=self._roots(event_rows))
        self._asked_at = self._read_at = asyncio.get_running_loop().time()
        return self._loaded

    async def _stored(self, connection: Connection) -> tuple[Sequence[Row], Sequence[Row]]:
        # In this order: who sees secrets also sees the event key that was drawn with them.
        rows = await connection.fetch(_SQL.service_keys.on(self._accounts.schema), list(NAMES))
        return rows, await connection.fetch(self._event_keys)

    async def _draw(self, connection: Connection) -> None:
        """Draw everything for an installation that has neither keys nor events."""
        wrapped = [
            self._master_keys.wrap(secrets.token_bytes(KEY_BYTES), service_key_names(name)[0])
            for name in NAMES
        ]
        await connection.fetch(
            _SQL.service_keys_insert.on(self._accounts.schema),
            *(list(NAMES), wrapped, self._master_keys.newest, self._drawn(since_start=True)),
        )

    async def _draw_late(self, connection: Connection) -> None:
        """Draw the first event key of an installation that is older than MACs."""
        await connection.fetch(
            _SQL.event_keys_insert.on(self._accounts.schema),
            *(FIRST_KEY, False, self._drawn(since_start=False)),
            *(self._master_keys.newest, timedelta()),
        )

    def _drawn(self, *, since_start: bool) -> bytes:
        name = event_key_name(FIRST_KEY, since_start=since_start)
        return self._master_keys.wrap(secrets.token_bytes(KEY_BYTES), name)

    @property
    def _event_keys(self) -> str:
        return _SQL.event_keys.on(self._accounts.schema)


def service_key_names(name: str) -> tuple[bytes, bytes]:
    """Return what a wrapped secret may be bound to, newest first.

    The newest says that there are event keys: whoever removes those cannot have them drawn anew. An
    earlier release bound a secret to its name alone.
    """
    return f"{name}, there are event keys".encode(), name.encode()


def event_key_name(key_id: int, *, since_start: bool) -> bytes:
    """Return what the wrapped event key is bound to: its id, and when it was created."""
    return f"event key {key_id}{' since the start' if since_start else ''}".encode()
