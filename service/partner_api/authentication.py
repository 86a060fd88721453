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
from service.facts.partners import Key
from service.ledger.service_keys import ServiceKeyStore
from service.partners.keys import HASH_VERSION, hash_secret, parse_authorization
from service.partners.rebinding import KeyRebinding

_NO_KEY = Key("", secret_hash=bytes(32), hash_version=HASH_VERSION)
"""Compared where there is no such key, so that a miss takes as long as a hit."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authenticates callers by their API keys.

    What a partner and its keys are follows from the partner's events, of which each request looks
    up the last: a revoked key is refused from the next one on, and no row revives it. A key that
    was rolled over ends by the clock, in every process, without a job.
    """

    partners: PartnersReader
    secrets: ServiceKeyStore
    clock: Clock
    rebinding: KeyRebinding

    async def authenticate(self, authorization: str | None, request_id: str) -> Caller:
        """Return the caller. Raises Refusal with one of the `auth_` codes."""
        token = parse_authorization(authorization)
        partner = await self.partners.current(token.partner_id)
        if partner is None:
            raise Refusal("auth_unknown_partner")
        if partner.status in {"pending", "declined"}:
            raise Refusal("auth_partner_not_approved")
        key = partner.keys.get(token.key_id, _NO_KEY)
        given = hash_secret((await self.secrets.get()).pepper, token, key.hash_version)
        same_secret = hmac.compare_digest(given, key.secret_hash)
        if not same_secret or key.mode != token.mode:
            raise Refusal("auth_bad_secret")
        if partner.status == "revoked" or key.has_ended(self.clock()):
            raise Refusal("auth_revoked")
        caller = Caller(
            token.partner_id,
            token.key_id,
            "live" if key.mode == "live" else "test",
            partner.sandbox_epoch,
            partner.return_link,
            partner.suppress_email,
            request_id,
        )
        if key.hash_version < HASH_VERSION:
            await self.rebinding.begin(token, caller.cause)
        return caller


class TracedAuthenticator(Authenticator):
    """Records how long authentication takes; it stands in where traces are on."""

    async def authenticate(self, authorization: str | None, request_id: str) -> Caller:
        """Return the caller, as above."""
        with span("authenticate"):
            return await super().authenticate(authorization, request_id)
