"""Facts about passkeys: which of them a person signs in with."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from service.core.ids import stream_id
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


class Passkey(NamedTuple):
    """A passkey that its person can use."""

    passkey_id: str
    credential_id: bytes
    public_key: bytes
    added_at: datetime


def passkeys_stream(person_id: str) -> UUID:
    """Return the id of the stream of a person's passkeys."""
    return stream_id("passkeys", person_id)


def held(past: Iterable[Recorded]) -> list[Passkey]:
    """Return the passkeys that a person has after a stream's events, oldest first."""
    found: dict[str, Passkey] = {}
    for recorded in past:
        match recorded.event:
            case PasskeyAdded() as added:
                found[added.passkey_id] = Passkey(
                    added.passkey_id, added.credential_id, added.public_key, recorded.meta.at
                )
            case PasskeyRemoved(passkey_id=passkey_id):
                found.pop(passkey_id, None)
            case PasskeysReset():
                found.clear()
            case event:
                raise TypeError(f"{type(event).__name__} is not a fact about passkeys")
    return list(found.values())
