"""What the service's team does to partner accounts: a verb each."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from service.clock import Clock
from service.ids import NewId
from service.ledger.events import Cause, Event
from service.ledger.ledger import Append, Ledger, Transaction
from service.partners import decisions
from service.partners.events import Partner, PartnerApplied, fold, partner_stream
from service.partners.keys import hash_secret, new_secret
from service.secrets import SecretsStore


class IssuedKey(NamedTuple):
    """A key and its bearer token, which is shown this once."""

    key_id: str
    mode: decisions.Mode
    token: str


class PartnerCommands:
    """Writes to the ledger of accounts."""

    def __init__(
        self, accounts: Ledger, secrets: SecretsStore, clock: Clock, new_id: NewId
    ) -> None:
        """Take the parts that the bootstrap chose."""
        self._accounts = accounts
        self._secrets = secrets
        self._clock = clock
        self._new_id = new_id

    async def add(self, name: str, email: str, cause: Cause) -> str:
        """Record that a partner applied; answer its id."""
        partner_id = self._new_id("ptn", self._clock())
        stream = partner_stream(partner_id)
        event = PartnerApplied(partner_id=partner_id, name=name, email=email)
        key = self._accounts.master_keys.new_data_key(stream)
        async with self._accounts.transaction() as transaction:
            await transaction.append(
                Append(stream, 0, [event], cause, key, new_key=True, public_ids=[partner_id])
            )
        return partner_id

    async def approve(self, partner_id: str, cause: Cause) -> None:
        """Approve a partner."""
        await self._decide(partner_id, cause, decisions.approve)

    async def decline(self, partner_id: str, cause: Cause) -> None:
        """Decline a partner."""
        await self._decide(partner_id, cause, decisions.decline)

    async def revoke(self, partner_id: str, cause: Cause) -> None:
        """End a partner's access."""
        await self._decide(partner_id, cause, decisions.revoke)

    async def change_settings(
        self,
        partner_id: str,
        cause: Cause,
        *,
        return_link: bool | None = None,
        suppress_email: bool | None = None,
    ) -> None:
        """Change a partner's settings; None keeps one as it is."""
        await self._decide(
            partner_id,
            cause,
            lambda partner: decisions.change_settings(
                partner, return_link=return_link, suppress_email=suppress_email
            ),
        )

    async def issue_key(self, partner_id: str, mode: decisions.Mode, cause: Cause) -> IssuedKey:
        """Issue a key; refuses unless the partner is approved."""
        key_id = self._new_id("key", self._clock())
        secret = new_secret()
        secret_hash = hash_secret((await self._secrets.get()).pepper, secret)
        await self._decide(
            partner_id,
            cause,
            lambda partner: decisions.issue_key(
                partner, key_id=key_id, mode=mode, secret_hash=secret_hash
            ),
            public_ids=[key_id],
        )
        return IssuedKey(key_id, mode, f"pk_{mode}_{partner_id}.{key_id}.{secret}")

    async def revoke_key(self, partner_id: str, key_id: str, cause: Cause) -> None:
        """Revoke one of a partner's keys."""
        await self._decide(partner_id, cause, lambda partner: decisions.revoke_key(partner, key_id))

    async def _decide(
        self,
        partner_id: str,
        cause: Cause,
        decide: Callable[[Partner], list[Event]],
        public_ids: Sequence[str] = (),
    ) -> None:
        stream = partner_stream(partner_id)

        async def attempt(transaction: Transaction) -> None:
            partner = fold(recorded.event for recorded in await transaction.read(stream))
            events = decide(partner)
            if events:
                append = Append(stream, partner.version, events, cause, public_ids=public_ids)
                await transaction.append(append)

        await self._accounts.decide(attempt)
