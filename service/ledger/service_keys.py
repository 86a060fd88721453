"""The service's own secrets, wrapped by the master keys, kept in the ledger of accounts.

One ring of master keys roots them all, so a new installation needs no other secret.
"""

import asyncio
import hashlib
import hmac
import secrets
from typing import NamedTuple

from service.core.ids import base32, base62
from service.ledger.database import Database
from service.ledger.encryption import KEY_BYTES, MasterKeys
from service.ledger.sql import queries

_SQL = queries("service.ledger")


class Secrets(NamedTuple):
    """`pepper` hashes API keys, `link` makes links' tokens, `lookup` finds sealed values."""

    pepper: bytes
    link: bytes
    lookup: bytes

    def link_token(self, purpose: str, subject: str) -> str:
        """Return the token of a link: the same again whenever asked (decision 10)."""
        mac = hmac.digest(self.link, f"{purpose}\0{subject}".encode(), hashlib.sha256)
        return base62(int.from_bytes(mac, "big"), 43)

    def lookup_email(self, email: str) -> str:
        """Return the keyed hash by which an email address is found, folded (readings: 422)."""
        return self._lookup("email", email.casefold())

    def lookup_recipient(self, email: str) -> str:
        """Return the keyed hash of the mailbox that an address leads to, by which mail is counted.

        Case and what follows a plus sign are left out: `who+1@` and `who@` are one mailbox.
        """
        local_part, _, domain = email.casefold().rpartition("@")
        mailbox = local_part.partition("+")[0] or local_part
        return self._lookup("recipient", f"{mailbox}@{domain}")

    def lookup_company_number(self, number: str | None) -> str | None:
        """Return the keyed hash by which a company number is found, without spaces and case.

        None for none, and for one of nothing but spaces: those are nobody's number.
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


class ServiceKeyStore:
    """Draws the secrets at an installation's first use, and reads them afterwards."""

    def __init__(self, accounts: Database, master_keys: MasterKeys) -> None:
        """`accounts` is the database of the ledger of accounts."""
        self._accounts = accounts
        self._master_keys = master_keys
        self._loaded: Secrets | None = None
        self._attempt: asyncio.Task[Secrets] | None = None

    async def get(self) -> Secrets:
        """Return the secrets: from memory after the first time.

        All who ask meanwhile share one attempt, so its one deadline is everybody's; who comes after
        it failed begins another. A caller that is cancelled leaves it to the others.
        Raises KeyUnknown if the ring lacks the master key that wrapped them.
        """
        if self._loaded is not None:
            return self._loaded
        if self._attempt is None or self._attempt.done():
            self._attempt = asyncio.create_task(self._load())
        return await asyncio.shield(self._attempt)

    async def _load(self) -> Secrets:
        """Draw the secrets unless they are there, and read them: under one deadline."""
        names = list(Secrets._fields)
        drawn = [secrets.token_bytes(KEY_BYTES) for _ in names]
        wrapped = [
            self._master_keys.wrap(key, name.encode())
            for name, key in zip(names, drawn, strict=True)
        ]
        newest = [self._master_keys.newest] * len(names)
        schema = self._accounts.schema
        async with self._accounts.writes.connection() as connection:
            await connection.fetch(_SQL.service_keys_insert.on(schema), names, wrapped, newest)
            rows = await connection.fetch(_SQL.service_keys.on(schema))
        self._loaded = Secrets(
            **{
                row["name"]: self._master_keys.unwrap(
                    row["wrapped"], row["master_key_id"], row["name"].encode()
                )
                for row in rows
            }
        )
        return self._loaded
