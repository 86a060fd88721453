"""Facts about partner accounts, their settings and their API keys; the state folded from them."""

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar
from uuid import UUID

import msgspec

from service.core.ids import stream_id
from service.ledger.events import Event


class PartnerApplied(Event, frozen=True):
    """A partner applied for an account.

    `contact_name`, `use` (what the API will be used for) and `website` come from an application in
    the developer console; an account that the team added has none of them, nor a `company_number`,
    which an application may have.
    """

    personal: ClassVar = ("name", "email", "contact_name", "use", "website", "company_number")
    partner_id: str
    name: str | None = None
    email: str | None = None
    contact_name: str | None = None
    use: str | None = None
    website: str | None = None
    company_number: str | None = None


class PartnerApproved(Event, frozen=True):
    """The service's team approved a partner. `website` is the partner's, if it was verified."""

    personal: ClassVar = ("website",)
    partner_id: str
    website: str | None = None


class PartnerWebsiteVerified(Event, frozen=True):
    """The service's team verified the website of an approved partner; empty: none any more."""

    personal: ClassVar = ("website",)
    partner_id: str
    website: str | None = None


class PartnerDeclined(Event, frozen=True):
    """The service's team declined a partner. The partner is shown the reason."""

    personal: ClassVar = ("reason",)
    partner_id: str
    reason: str | None = None


class PartnerRevoked(Event, frozen=True):
    """The service's team ended a partner's access, including that of all its keys."""

    partner_id: str


class PartnerSettingsChanged(Event, frozen=True):
    """A partner's settings changed; the fields are the new values (contract 2.2).

    `return_url` is where its customers may take their entity's id; None: nowhere.
    """

    partner_id: str
    return_link: bool
    suppress_email: bool
    return_url: str | None = None


class ApiKeyIssued(Event, frozen=True):
    """A key was issued. Only a keyed hash is stored.

    It covers the secret alone in `hash_version` 1, and the whole token since. `name` is what the
    partner's people call it, encrypted because they may name it after one of them.
    """

    personal: ClassVar = ("name",)
    partner_id: str
    key_id: str
    mode: str
    secret_hash: bytes
    hash_version: int = 1
    name: str | None = None


class ApiKeyRevoked(Event, frozen=True):
    """A key was revoked: immediately, or as of `effective_at` when another key replaces it."""

    partner_id: str
    key_id: str
    effective_at: datetime | None = None


class ApiKeyRebound(Event, frozen=True):
    """The stored hash of a key now covers its whole token; before, it covered only the secret.

    Recorded when such a key is used: only then is its secret known.
    """

    partner_id: str
    key_id: str
    secret_hash: bytes
    hash_version: int


class MemberAdded(Event, frozen=True):
    """A person joined a partner's team and may use its developer console.

    Encrypted under the partner's key. `email_hash` is the keyed lookup of the folded address.
    `person_id` is the id by which events name this person as their actor; events of earlier
    releases do not have it.
    """

    personal: ClassVar = ("email", "email_hash")
    partner_id: str
    member_id: str
    email: str | None = None
    email_hash: str | None = None
    person_id: str | None = None


class MemberRemoved(Event, frozen=True):
    """A person was removed from a partner's team."""

    partner_id: str
    member_id: str


class SandboxReset(Event, frozen=True):
    """A partner's sandbox was reset: from now on its references make new streams.

    Nothing is deleted; `epoch` is part of every stream id in test mode.
    """

    partner_id: str
    epoch: int


class Key(msgspec.Struct, frozen=True):
    """A key as the partner's stream knows it. `ends_at`: when it ends, if that lies ahead.

    `name` is None where it has none, or the partner's data was erased.
    """

    mode: str
    revoked: bool = False
    ends_at: datetime | None = None
    secret_hash: bytes = b""
    hash_version: int = 1
    name: str | None = None

    def has_ended(self, now: datetime) -> bool:
        """Return whether it has stopped working."""
        return self.revoked or (self.ends_at is not None and self.ends_at <= now)

    def ending(self, at: datetime | None) -> "Key":
        """Return it with an end, None: at once. Of several the earliest holds; at once stays so."""
        if at is None or self.revoked:
            return msgspec.structs.replace(self, revoked=True, ends_at=None)
        return msgspec.structs.replace(self, ends_at=min(at, self.ends_at or at))


class TeamMember(msgspec.Struct, frozen=True):
    """A person of a partner's team; both are None once the partner's data is erased."""

    email: str | None
    email_hash: str | None


class Partner(msgspec.Struct, frozen=True):
    """A partner's state, folded from its stream. `status` empty: no such partner.

    The texts are what the partner said about itself, None if it said nothing or was erased.
    `verified_website` is what the team found to be true; `reason` is why it was declined.
    `status_version` is that of the team's last decision, on its status or its website, and
    `settings_version` that of the last event that changed its settings.
    """

    partner_id: str = ""
    version: int = 0
    status: str = ""
    status_version: int = 0
    settings_version: int = 0
    name: str | None = None
    email: str | None = None
    contact_name: str | None = None
    use: str | None = None
    website: str | None = None
    company_number: str | None = None
    verified_website: str | None = None
    reason: str | None = None
    return_link: bool = False
    suppress_email: bool = False
    return_url: str | None = None
    sandbox_epoch: int = 0
    keys: dict[str, Key] = msgspec.field(default_factory=dict[str, Key])
    members: dict[str, TeamMember] = msgspec.field(default_factory=dict[str, TeamMember])


def partner_stream(partner_id: str) -> UUID:
    """Return the id of a partner's stream."""
    return stream_id("partner", partner_id)


def fold(events: Iterable[Event], before: Partner | None = None) -> Partner:
    """Fold a partner's stream into its state; `before` is its state before these events."""
    # The keys and members of a copy are changed in place, as nobody else has it yet: a copy for
    # each event would take time with the square of the events, in every process that authenticates.
    state = before or Partner()
    state = msgspec.structs.replace(state, keys=dict(state.keys), members=dict(state.members))
    for event in events:
        state = msgspec.structs.replace(_evolve(state, event), version=state.version + 1)
    return state


def _evolve(state: Partner, event: Event) -> Partner:
    change, version = msgspec.structs.replace, state.version + 1
    match event:
        case PartnerApplied():
            applied = msgspec.structs.asdict(event)
            return change(state, status="pending", status_version=version, **applied)
        case PartnerApproved():
            decided = change(state, status="approved", status_version=version)
            return change(decided, reason=None, verified_website=event.website)
        case PartnerWebsiteVerified():
            return change(state, status_version=version, verified_website=event.website)
        case PartnerDeclined():
            decided = change(state, status="declined", status_version=version)
            return change(decided, reason=event.reason)
        case PartnerRevoked():
            return change(state, status="revoked", status_version=version)
        case PartnerSettingsChanged():
            return change(state, settings_version=version, **msgspec.structs.asdict(event))
        case SandboxReset():
            return change(state, sandbox_epoch=event.epoch)
        case ApiKeyIssued():
            key = Key(
                event.mode,
                secret_hash=event.secret_hash,
                hash_version=event.hash_version,
                name=event.name,
            )
            state.keys[event.key_id] = key
            return state
        case ApiKeyRebound():
            known, covers = state.keys[event.key_id], event.hash_version
            state.keys[event.key_id] = change(
                known, secret_hash=event.secret_hash, hash_version=covers
            )
            return state
        case ApiKeyRevoked():
            state.keys[event.key_id] = state.keys[event.key_id].ending(event.effective_at)
            return state
        case MemberAdded():
            state.members[event.member_id] = TeamMember(event.email, event.email_hash)
            return state
        case MemberRemoved():
            state.members.pop(event.member_id, None)
            return state
        case _:
            raise TypeError(f"{type(event).__name__} is not a fact about a partner")
