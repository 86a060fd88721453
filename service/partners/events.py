"""Facts about partner accounts, their settings and their API keys; the state folded from them."""

from collections.abc import Iterable
from typing import ClassVar
from uuid import UUID

import msgspec

from service.ids import stream_id
from service.ledger.events import Event


class PartnerApplied(Event, frozen=True):
    """A partner asked for an account."""

    personal: ClassVar = ("name", "email")
    partner_id: str
    name: str | None = None
    email: str | None = None


class PartnerApproved(Event, frozen=True):
    """The service's team approved a partner."""

    partner_id: str


class PartnerDeclined(Event, frozen=True):
    """The service's team declined a partner."""

    partner_id: str


class PartnerRevoked(Event, frozen=True):
    """The service's team ended a partner's access, and that of all its keys."""

    partner_id: str


class PartnerSettingsChanged(Event, frozen=True):
    """A partner's settings (contract 2.2) as they are from now on."""

    partner_id: str
    return_link: bool
    suppress_email: bool


class ApiKeyIssued(Event, frozen=True):
    """A key was issued; only a keyed hash of its secret is kept."""

    partner_id: str
    key_id: str
    mode: str
    secret_hash: bytes


class ApiKeyRevoked(Event, frozen=True):
    """A key was revoked."""

    partner_id: str
    key_id: str


EVENTS = (
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    ApiKeyIssued,
    ApiKeyRevoked,
)


class Key(msgspec.Struct, frozen=True):
    """A key as the partner's stream knows it."""

    mode: str
    revoked: bool = False


class Partner(msgspec.Struct, frozen=True):
    """A partner's state, folded from its stream. `status` empty: no such partner."""

    partner_id: str = ""
    version: int = 0
    status: str = ""
    return_link: bool = False
    suppress_email: bool = False
    keys: dict[str, Key] = msgspec.field(default_factory=dict[str, Key])


def partner_stream(partner_id: str) -> UUID:
    """Answer the id of a partner's stream."""
    return stream_id("partner", partner_id)


def fold(events: Iterable[Event]) -> Partner:
    """Answer the state that a partner's stream amounts to."""
    state = Partner()
    for event in events:
        state = msgspec.structs.replace(_evolve(state, event), version=state.version + 1)
    return state


def _evolve(state: Partner, event: Event) -> Partner:  # noqa: PLR0911 - one match, a case a fact
    change = msgspec.structs.replace
    match event:
        case PartnerApplied():
            return change(state, partner_id=event.partner_id, status="pending")
        case PartnerApproved():
            return change(state, status="approved")
        case PartnerDeclined():
            return change(state, status="declined")
        case PartnerRevoked():
            return change(state, status="revoked")
        case PartnerSettingsChanged():
            return change(state, return_link=event.return_link, suppress_email=event.suppress_email)
        case ApiKeyIssued():
            return change(state, keys=state.keys | {event.key_id: Key(event.mode)})
        case ApiKeyRevoked():
            key = change(state.keys[event.key_id], revoked=True)
            return change(state, keys=state.keys | {event.key_id: key})
        case _:
            raise TypeError(f"{type(event).__name__} is not a fact about a partner")
