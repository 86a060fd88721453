"""Authentication by a partner's API key (contract section 5).

The order of checks: format, partner, approval, key and secret, revocation. Only the holder of a
valid secret learns that a key or its partner was revoked, and a miss costs what a hit costs.
"""

import hmac
from dataclasses import dataclass

from projections.partners.reader import PartnersReader
from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.tracing import span
from service.facts.caller import Caller
from service.ledger.service_keys import ServiceKeyStore
from service.partners.keys import HASH_VERSION, has_ended, hash_secret, parse_authorization
from service.partners.rebinding import KeyRebinding

_NO_HASH = bytes(32)
"""Compared where there is no such key, so that a miss takes as long as a hit."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authenticates callers by their API keys.

    Each request reads `partners` once, so a revoked key is refused from the next one on. A key
    that was rolled over ends by the clock, in every process, without a job.
    """

    partners: PartnersReader
    secrets: ServiceKeyStore
    clock: Clock
    rebinding: KeyRebinding

    async def authenticate(self, authorization: str | None, request_id: str) -> Caller:
        """Return the caller. Raises Refusal with one of the `auth_` codes."""
        token = parse_authorization(authorization)
        row = await self.partners.authenticate(token.partner_id, token.key_id)
        if row is None:
            raise Refusal("auth_unknown_partner")
        if row["status"] in {"pending", "declined"}:
            raise Refusal("auth_partner_not_approved")
        secrets = await self.secrets.get()
        version, known = row["hash_version"] or HASH_VERSION, row["secret_hash"] or _NO_HASH
        if version < HASH_VERSION and secrets.events.since_start:
            known = _NO_HASH  # no key of this installation is as old as that
        given = hash_secret(secrets.pepper, token, version)
        same_secret = hmac.compare_digest(given, known)
        if not same_secret or row["mode"] != token.mode:
            raise Refusal("auth_bad_secret")
        caller = Caller(
            token.partner_id,
            row["name"],
            token.key_id,
            row["mode"],
            row["sandbox_epoch"],
            row["return_link"],
            row["suppress_email"],
            request_id,
        )
        if version < HASH_VERSION:
            await self.rebinding.check(token, caller.cause)
        if row["status"] == "revoked" or has_ended(
            row["revoked_at"], later=row["revoked_later"], now=self.clock()
        ):
            raise Refusal("auth_revoked")
        return caller


class TracedAuthenticator(Authenticator):
    """Records how long authentication takes; it stands in where traces are on."""

    async def authenticate(self, authorization: str | None, request_id: str) -> Caller:
        """Return the caller, as above."""
        with span("authenticate"):
            return await super().authenticate(authorization, request_id)
