"""Starting and finishing onboardings: a verb each."""

from datetime import timedelta
from typing import Any, Final, NamedTuple

import msgspec

from projections.connections.reader import access, is_established
from projections.onboardings.reader import OnboardingsReader
from projections.partners.reader import PartnersReader
from service.caller import Caller
from service.clock import Clock
from service.connections.events import EntityConnected, connection_stream
from service.entities.commands import business_locks, register
from service.entities.events import EntityRegistered, entity_stream
from service.errors import Refusal
from service.ids import NewId, stream_id
from service.ledger.events import Cause
from service.ledger.ledger import Append, Ledger, Transaction
from service.ledger.sealing import DataKey
from service.onboardings import decisions
from service.onboardings.events import (
    OnboardingCompleted,
    OnboardingReplayMismatched,
    OnboardingStarted,
    onboarding_stream,
)
from service.onboardings.wire import OnboardingRequest
from service.sandbox import refuse_trigger
from service.secrets import Secrets, SecretsStore, token_hash

LINK_LIFETIME: Final = timedelta(days=7)
PURPOSE: Final = "onboarding"


class Started(NamedTuple):
    """The outcome of a start: `matches` tells whether a replay came with the same body."""

    onboarding_id: str
    already_existed: bool
    magic_link_url: str | None
    matches: bool | None


class OnboardingCommands:
    """Writes onboardings to one ledger."""

    def __init__(
        self,
        ledger: Ledger,
        onboardings: OnboardingsReader,
        partners: PartnersReader,
        secrets: SecretsStore,
        public_url: str,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        """Take the parts that the bootstrap chose."""
        self._ledger = ledger
        self._onboardings = onboardings
        self._partners = partners
        self._secrets = secrets
        self._public_url = public_url
        self._clock = clock
        self._new_id = new_id

    async def start(self, caller: Caller, request: OnboardingRequest) -> Started:
        """Onboard a business, or answer what the first call did (contract 4.1).

        Refuses with `onboarding_unavailable`, or `partner_disconnected` on a replay.
        """
        stream = onboarding_stream(
            caller.mode, caller.epoch, caller.partner_id, request.partner_user_id
        )
        body = msgspec.json.encode(request, order="deterministic")
        secrets = await self._secrets.get()

        async def attempt(transaction: Transaction) -> Started:
            existing = decisions.fold(await transaction.read(stream))
            if existing is not None:
                return await self._replay(transaction, caller, existing.started, body)
            refuse_trigger(caller.mode, "start_onboarding", request.partner_user_id)
            return await self._start(transaction, caller, request, body, secrets)

        return await self._ledger.decide(attempt)

    async def complete(self, token: str, request_id: str) -> tuple[str, str, str]:
        """Finish an onboarding as its person; answer (onboarding, entity, partner) ids.

        Refuses with `magic_link_invalid`, `magic_link_already_used`, `magic_link_expired`, or
        `onboarding_unavailable` when the business finished by another way since.
        """
        row = await self._onboardings.by_link(token_hash(token))
        if row is None or not await self._partners.is_approved(row["partner_id"]):
            raise Refusal("magic_link_invalid")
        connection = connection_stream(self._ledger.name, row["partner_id"], row["entity_id"])

        async def attempt(transaction: Transaction) -> tuple[str, str, str]:
            entity = await transaction.read(entity_stream(self._ledger.name, row["entity_id"]))
            await self._lock_business(transaction, entity[0].event)
            await transaction.lock(connection)
            onboarding = decisions.fold(await transaction.read(row["stream_id"]))
            if onboarding is None:
                raise Refusal("magic_link_invalid")
            expired = row["expires_at"] <= await transaction.now()
            decisions.check_link(onboarding, expired=expired)
            await self._refuse_established(transaction, entity[0].event)
            return await self._complete(transaction, onboarding, request_id)

        return await self._ledger.decide(attempt)

    async def _start(
        self,
        transaction: Transaction,
        caller: Caller,
        request: OnboardingRequest,
        body: bytes,
        secrets: Secrets,
    ) -> Started:
        live = self._ledger.name == "live"
        now = self._clock()
        onboarding_id, entity_id = self._new_id("onb", now), self._new_id("ent", now)
        number = request.company_number or None
        entity = register(
            secrets,
            self._ledger.master_keys,
            caller.cause,
            mode=caller.mode,
            entity_id=entity_id,
            name=request.company_name,
            email=request.user_email,
            company_number=number,
            established=False,
        )
        if live:
            await self._refuse_established(transaction, entity.events[0])
        assert entity.key is not None  # noqa: S101 - register made it
        token = secrets.link_token(PURPOSE, onboarding_id)
        started = OnboardingStarted(
            onboarding_id=onboarding_id,
            entity_id=entity_id,
            partner_id=caller.partner_id,
            partner_user_id=request.partner_user_id,
            fingerprint=entity.key.fingerprint(body),
            mail_wanted=live and not caller.suppress_email,
            magic_link_hash=token_hash(token) if live else None,
            expires_at=await transaction.now() + LINK_LIFETIME if live else None,
            details=msgspec.to_builtins(request),
        )
        stream = onboarding_stream(
            caller.mode, caller.epoch, caller.partner_id, request.partner_user_id
        )
        appends = [
            Append(stream, 0, [started], caller.cause, entity.key, public_ids=[onboarding_id]),
            entity,
        ]
        if not live:
            appends.append(self._connect(caller.partner_id, entity_id, caller.cause))
        await transaction.append(*appends)
        url = self.magic_link(token) if live else sandbox_link(onboarding_id)
        return Started(onboarding_id, already_existed=False, magic_link_url=url, matches=None)

    async def _replay(
        self, transaction: Transaction, caller: Caller, started: OnboardingStarted, body: bytes
    ) -> Started:
        known = await access(transaction, caller.partner_id, started.entity_id)
        if known.disconnected_at is not None:
            raise Refusal("partner_disconnected")
        key_id = entity_stream(caller.mode, started.entity_id)
        key = (await transaction.data_keys([key_id])).get(key_id)
        matches = await self._compare(transaction, caller, started, key, body)
        return Started(started.onboarding_id, True, None, matches)

    async def _compare(
        self,
        transaction: Transaction,
        caller: Caller,
        started: OnboardingStarted,
        key: DataKey | None,
        body: bytes,
    ) -> bool | None:
        """Record a replay with another body, once for each; None where the key is destroyed."""
        if key is None:
            return None
        fingerprint = key.fingerprint(body)
        if fingerprint == started.fingerprint:
            return True
        stream = stream_id("mismatch", caller.mode, started.onboarding_id, fingerprint)
        if not await transaction.exists(stream):
            event = OnboardingReplayMismatched(
                onboarding_id=started.onboarding_id, fingerprint=fingerprint
            )
            await transaction.append(Append(stream, 0, [event], caller.cause))
        return False

    async def _complete(
        self, transaction: Transaction, onboarding: decisions.Onboarding, request_id: str
    ) -> tuple[str, str, str]:
        started = onboarding.started
        cause = Cause(f"customer:{started.entity_id}", request_id)
        completed = OnboardingCompleted(
            onboarding_id=started.onboarding_id,
            entity_id=started.entity_id,
            partner_id=started.partner_id,
        )
        stream = onboarding_stream(
            self._ledger.name, 0, started.partner_id, started.partner_user_id
        )
        appends = [Append(stream, onboarding.version, [completed], cause)]
        known = await access(transaction, started.partner_id, started.entity_id)
        if not known.connected:
            partner_id, entity_id = started.partner_id, started.entity_id
            appends.append(self._connect(partner_id, entity_id, cause, known.version))
        await transaction.append(*appends)
        return started.onboarding_id, started.entity_id, started.partner_id

    def magic_link(self, token: str) -> str:
        """Answer the address that a person opens to finish; it is a credential."""
        return f"{self._public_url}/onboarding/{token}"

    def _connect(self, partner_id: str, entity_id: str, cause: Cause, version: int = 0) -> Append:
        connected = EntityConnected(partner_id=partner_id, entity_id=entity_id, via="onboarding")
        stream = connection_stream(self._ledger.name, partner_id, entity_id)
        return Append(stream, version, [connected], cause)

    async def _lock_business(self, transaction: Transaction, registered: Any) -> None:  # noqa: ANN401
        if isinstance(registered, EntityRegistered):
            await transaction.lock(*business_locks(registered))

    async def _refuse_established(self, transaction: Transaction, registered: Any) -> None:  # noqa: ANN401
        if isinstance(registered, EntityRegistered) and await is_established(
            transaction, registered.email_hash or "", registered.company_number_hash
        ):
            raise Refusal("onboarding_unavailable")


def sandbox_link(onboarding_id: str) -> str:
    """Answer test mode's placeholder: a host that never resolves (RFC 2606), nothing to redeem."""
    return f"https://sandbox.invalid/onboarding/{onboarding_id}"
