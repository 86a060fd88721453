"""Signing in by a link that is sent to an email address.

Any address gets one: the response does not depend on whether it is known. The link's token is an
HMAC of its id, so that the mail can be made again; only its SHA-256 is stored (decision 10). What
a link holds is bound to its row as in sessions: a row that was altered is no link.

A link belongs to the browser that asked for it, which has a random token in a cookie. Anybody can
ask for anybody's link, and send on what they were sent: in another browser a link signs in only
whoever also enters the code that the asking browser shows, and leads nowhere but home.
"""

import hmac
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

import msgspec

from service.core.clock import Clock
from service.core.errors import Refusal, invalid
from service.core.ids import NewId
from service.ledger.database import Database
from service.ledger.encryption import BoundColumns, KeyUnknown, MasterKeys, bound_row
from service.ledger.service_keys import ServiceKeyStore, token_hash
from service.ledger.sql import queries
from service.people.browsers import browser_code, browser_hash, is_code_of
from service.people.marks import Mark
from service.people.sessions import NOWHERE, Session, Sessions, SignInPlace, now

LINK_LIFETIME: Final = timedelta(minutes=10)
"""Long enough for the second attempt of a mail that a greylisting server refuses for five."""
PURPOSE: Final = "sign-in"
COUNTED_WITHIN: Final = timedelta(minutes=15)
ASKED_MAX: Final = 5
"""Links that one mailbox may be sent in COUNTED_WITHIN; further ones are silently dropped. As many
again are for each browser in which its address has signed in before: nobody else keeps it out."""

BOUND: Final = (
    *("link_id", "token_hash", "address_hash", "recipient_hash", "asked_at", "expires_at"),
)
"""Columns that a link's row is bound to: all but the box itself, the id of the master key that
opens it, what became of its mail, and `used_at`, with which the box goes."""

_SQL = queries("service.people")


class Asked(msgspec.Struct, frozen=True):
    """What is encrypted in a link: the address that it is for, where it leads, and who asked.

    `browser` is the SHA-256 of the asking browser's token, hex; empty in links of earlier releases.
    `origin` is that of the page that asked, to which the link leads; empty is the public URL.
    """

    email: str
    next_path: str
    browser: str = ""
    origin: str = ""


def bound_to(row: BoundColumns) -> bytes:
    """Return what is encrypted in a link's row is bound to."""
    return bound_row("sign_in_links", row, BOUND)


def unwrapped(master_keys: MasterKeys, row: BoundColumns) -> Asked:
    """Decrypt a link's row; raise KeyUnknown, also for a row that was altered."""
    sealed = master_keys.unwrap(row["wrapped"], row["master_key_id"], bound_to(row))
    return msgspec.json.decode(sealed, type=Asked)


class SignInLink(NamedTuple):
    """A usable link: whom it signs in, where it leads, and from which browser it was asked for."""

    link_id: str
    email: str
    address_hash: bytes
    next_path: str
    browser: str

    def is_asked_from(self, browser: str | None) -> bool:
        """Return whether a browser, by its token, is the one that asked."""
        return browser is not None and hmac.compare_digest(browser_hash(browser), self.browser)


@dataclass(frozen=True, slots=True)
class SignIn:
    """Issues and redeems links. All of it is in the ledger of accounts' schema."""

    accounts: Database
    secrets: ServiceKeyStore
    master_keys: MasterKeys
    sessions: Sessions
    clock: Clock
    new_id: NewId

    async def ask(
        self,
        email: str,
        next_path: str,
        browser: str,
        mark: Mark | None = None,
        *,
        origin: str = "",
    ) -> None:
        """Record a link to be sent, unless the address has had too many.

        `browser` is the token of the browser that asks, and `mark` the one that it has of this
        address, if that holds. The link leads to `origin`, or to the public URL.
        """
        secrets = await self.secrets.get()
        link_id = self.new_id("sin", self.clock())
        # The path is encrypted with the address: it may hold another link's token.
        asked = msgspec.json.encode(Asked(email, next_path, browser_hash(browser), origin))
        hashed = token_hash(secrets.link_token(PURPOSE, link_id))
        address_hash = secrets.lookup_email(email)
        # By what links are counted: the mailbox, or one of its own browsers.
        mailbox = bytes.fromhex(secrets.lookup_recipient(email))
        recipient = token_hash(mark.mark_id) if mark else mailbox
        schema = self.accounts.schema
        async with self.accounts.writes.transaction() as connection:
            await connection.execute(_SQL.link_lock.on(schema), recipient)
            asked_at = await now(connection, schema)
            hashes = (hashed, bytes.fromhex(address_hash), recipient)
            values = (link_id, *hashes, asked_at, asked_at + LINK_LIFETIME)
            bound = bound_to(dict[str, object](zip(BOUND, values, strict=True)))
            wrapped = self.master_keys.wrap(asked, bound)
            await connection.execute(
                _SQL.link_ask.on(schema),
                *values,
                wrapped,
                self.master_keys.newest,
                COUNTED_WITHIN,
                ASKED_MAX,
                # Before all that strangers can ask for while the link lives.
                asked_at - LINK_LIFETIME if mark else asked_at,
            )

    async def look(self, token: str) -> SignInLink:
        """Return what a link would do, without using it.

        Refuses with `sign_in_link_invalid`, `sign_in_link_expired` or `sign_in_link_used`.
        """
        row = await self.accounts.reads.fetchrow(_SQL.link_look, token_hash(token))
        if row is None:
            raise Refusal("sign_in_link_invalid")
        if row["used_at"] is not None:
            raise Refusal("sign_in_link_used")
        if row["expired"]:
            raise Refusal("sign_in_link_expired")
        try:
            asked = unwrapped(self.master_keys, row)
        except KeyUnknown as error:  # altered; or its master key was retired: asking again mends it
            raise Refusal("sign_in_link_invalid") from error
        return SignInLink(
            row["link_id"], asked.email, row["address_hash"], asked.next_path, asked.browser
        )

    async def redeem(
        self,
        token: str,
        old_session: str | None,
        browser: str | None,
        code: str = "",
        place: SignInPlace = NOWHERE,
    ) -> tuple[Session, str]:
        """Use up a link; return a new session, and the path that the person asked for.

        `old_session` is ended, and pages of it work on if it was the same person's; `place` is
        where the new one is begun from. All of it happens, or the link can be used again. A
        `browser` that is not the one that asked needs its `code`, and is led nowhere: the path is
        empty. Refuses as `look` does, and with `validation_failed` for a wrong code; of two calls
        at once, one gets the session.
        """
        link = await self.look(token)
        is_here = link.is_asked_from(browser)
        if not is_here and not is_code_of(await self.secrets.get(), link.browser, code):
            raise invalid("code", "not the code that your other browser shows")
        old = await self.sessions.read(old_session) if old_session else None
        forms = old.forms if old and old.address_hash == link.address_hash.hex() else ""
        schema = self.accounts.schema
        async with self.accounts.writes.transaction() as connection:
            if await connection.fetchrow(_SQL.link_use.on(schema), token_hash(token)) is None:
                raise Refusal("sign_in_link_used")
            if old_session is not None:
                await connection.execute(_SQL.session_end.on(schema), token_hash(old_session))
            whose = (link.email, link.address_hash, place)
            session = await self.sessions.begin(connection, *whose, forms=forms)
        return session, link.next_path if is_here else ""

    async def code_of(self, browser: str) -> str:
        """Return the code that a browser shows after it has asked, for links in other browsers."""
        return browser_code(await self.secrets.get(), browser_hash(browser))
