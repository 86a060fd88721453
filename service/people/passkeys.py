"""Passkeys that people have: adding and removing them; recovery and sign-out by the team."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from service.core.clock import Clock
from service.core.errors import Refusal
from service.core.ids import NewId
from service.facts.passkeys import (
    COUNTED,
    Passkey,
    PasskeyAdded,
    PasskeyRemoved,
    Passkeys,
    PasskeysReset,
    fold,
    passkeys_stream,
)
from service.facts.people import PersonSignedOut, signed_out_stream
from service.ledger.events import Cause
from service.ledger.folding import Folding
from service.ledger.ledger import Ledger
from service.ledger.transaction import Transaction
from service.ledger.writing import Append
from service.people.sessions import Sessions

PASSKEYS_MAX: Final = 10
"""Passkeys of one person."""

_PASSKEYS: Final = Folding(
    Passkeys(), fold, parts=lambda known: 1 + len(known.by_id), personal=False
)


class Ended(NamedTuple):
    """What the team took from a person, and whether the service knew anybody by that id."""

    passkeys: int
    sessions: int
    is_known: bool


@dataclass(frozen=True, slots=True)
class PasskeyCommands:
    """Reads and writes the ledger of accounts: whose passkey it is rests on no other table."""

    accounts: Ledger
    sessions: Sessions
    clock: Clock
    new_id: NewId

    async def of(self, person_id: str) -> list[Passkey]:
        """Return a person's passkeys, oldest first."""
        return (await self.accounts.fold(passkeys_stream(person_id), _PASSKEYS)).held

    async def add(
        self, person_id: str, credential_id: bytes, public_key: bytes, cause: Cause
    ) -> None:
        """Add a passkey; a repeated one changes nothing.

        Refuses with `limit_reached`, and with `rate_limited` beyond the bound of the day.
        """
        stream = passkeys_stream(person_id)
        added = PasskeyAdded(
            person_id=person_id,
            passkey_id=self.new_id("psk", self.clock()),
            credential_id=credential_id,
            public_key=public_key,
        )

        async def attempt(transaction: Transaction) -> None:
            known = await transaction.fold(stream, _PASSKEYS)
            if any(one.credential_id == credential_id for one in known.held):
                return
            if len(known.held) >= PASSKEYS_MAX:
                message = f"A person can have {PASSKEYS_MAX} passkeys. Remove one first."
                raise Refusal("limit_reached", message)
            known.changes.allow([added], COUNTED, cause.actor, self.clock())
            await transaction.append(Append(stream, known.version, [added], cause))

        await self.accounts.decide(attempt)

    async def remove(self, person_id: str, passkey_id: str, cause: Cause) -> None:
        """Remove one of a person's passkeys; one that they do not have changes nothing."""
        stream = passkeys_stream(person_id)
        removed = PasskeyRemoved(person_id=person_id, passkey_id=passkey_id)

        async def attempt(transaction: Transaction) -> None:
            known = await transaction.fold(stream, _PASSKEYS)
            if passkey_id in known.by_id:
                await transaction.append(Append(stream, known.version, [removed], cause))

        await self.accounts.decide(attempt)

    async def sign_out(self, person_id: str, cause: Cause, session_id: str | None = None) -> Ended:
        """End every session of a person, or one of them, for the team: it is on record."""
        is_known = await self._is_known(person_id)
        stream = signed_out_stream(cause.request_id, person_id)
        async with self.accounts.transaction() as transaction:
            ended = await self.sessions.end_in(transaction.connection, person_id, session_id)
            signed_out = PersonSignedOut(person_id=person_id, sessions=ended)
            await transaction.append(Append(stream, 0, [signed_out], cause))
        return Ended(0, ended, is_known)

    async def recover(self, person_id: str, helper_id: str, cause: Cause) -> Ended:
        """Remove all passkeys of a person who lost them, and end their sessions.

        That somebody did is on record even if there was none.

        `helper_id` is the person id of the member of the team who does it. Refuses with
        `own_recovery` where that is the same person: whoever took over an account could
        otherwise put a passkey of their own in the place of its owner's.
        """
        if person_id == helper_id:
            raise Refusal("own_recovery")
        is_known = await self._is_known(person_id)
        stream = passkeys_stream(person_id)

        async def attempt(transaction: Transaction) -> Ended:
            known = await transaction.fold(stream, _PASSKEYS)
            reset = PasskeysReset(person_id=person_id)
            await transaction.append(Append(stream, known.version, [reset], cause))
            ended = await self.sessions.end_in(transaction.connection, person_id)
            return Ended(len(known.by_id), ended, is_known)

        return await self.accounts.decide(attempt)

    async def _is_known(self, person_id: str) -> bool:
        """Return whether somebody with this id has, or had, a passkey, or was signed in lately."""
        known = await self.accounts.fold(passkeys_stream(person_id), _PASSKEYS)
        return known.had_any or await self.sessions.is_known(person_id)
