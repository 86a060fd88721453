"""Facts about passkeys: which of them a person signs in with."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from service.core.ids import stream_id
from service.facts.changes import Changes
from service.ledger.events import Event, Recorded


class PasskeyAdded(Event, frozen=True):
    """A person added a passkey, with which they prove who they are from then on.

    `credential_id` and `public_key` (COSE) are what their authenticator made for this service.
    """

    person_id: str
    passkey_id: str
    credential_id: bytes
    public_key: bytes


class PasskeyRemoved(Event, frozen=True):
    """A person removed one of their passkeys."""

    person_id: str
    passkey_id: str


class PasskeysReset(Event, frozen=True):
    """The team removed a person's passkeys, all of which they had lost."""

    person_id: str


COUNTED: Final = (PasskeyAdded,)
"""The changes of which a person can make so many a day."""


class Passkey(NamedTuple):
    """A passkey that its person can use."""

    passkey_id: str
    credential_id: bytes
    public_key: bytes
    added_at: datetime


def passkeys_stream(person_id: str) -> UUID:
    """Return the id of the stream of a person's passkeys."""
    return stream_id("passkeys", person_id)


class Passkeys(NamedTuple):
    """A person's passkeys, folded from their stream, and how often they added one of late.

    `had_any` stays, whatever was removed.
    """

    by_id: Mapping[str, Passkey] = MappingProxyType({})
    version: int = 0
    had_any: bool = False
    changes: Changes = Changes()

    @property
    def held(self) -> list[Passkey]:
        """The passkeys that the person has, oldest first."""
        return list(self.by_id.values())


def fold(before: Passkeys, past: Sequence[Recorded]) -> Passkeys:
    """Return a person's passkeys after further events of their stream."""
    found, had_any = dict(before.by_id), before.had_any
    for recorded in past:
        match recorded.event:
            case PasskeyAdded() as added:
                found[added.passkey_id] = Passkey(
                    added.passkey_id, added.credential_id, added.public_key, recorded.meta.at
                )
                had_any = True
            case PasskeyRemoved(passkey_id=passkey_id):
                found.pop(passkey_id, None)
            case PasskeysReset():
                found.clear()
            case event:
                raise TypeError(f"{type(event).__name__} is not a fact about passkeys")
    changes = before.changes.after(past, COUNTED)
    return Passkeys(found, before.version + len(past), had_any, changes)
