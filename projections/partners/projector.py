"""From facts about partners to the rows that lists and the console read."""

from collections.abc import Iterable

from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRebound,
    ApiKeyRevoked,
    MemberAdded,
    MemberRemoved,
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    SandboxReset,
)
from service.ledger.events import ERASED, Recorded
from service.ledger.projector import Projector, Table, Update, Write
from service.ledger.service_keys import lookup_bytes
from service.ledger.sql import queries

_SQL = queries("projections.partners")

PARTNERS = Table(
    "partners",
    "partner_id text, stream_id uuid, name text, email text, status text, applied_at timestamptz",
)
API_KEYS = Table(
    "api_keys",
    "key_id text, partner_id text, mode text, secret_hash bytea, hash_version smallint,"
    " issued_at timestamptz, revoked_at timestamptz, revoked_later boolean",
    replaces="key_id",
)
MEMBERS = Table(
    "members",
    "member_id text, partner_id text, address_hash bytea, added_at timestamptz",
)


class PartnersProjector(Projector):
    """Tables `partners`, `api_keys` and `members`."""

    name = "partners"
    version = 1
    tables = (PARTNERS, API_KEYS, MEMBERS)
    topics = (
        *(PartnerApplied, PartnerApproved, PartnerDeclined, PartnerRevoked),
        *(PartnerSettingsChanged, SandboxReset, ApiKeyIssued, ApiKeyRevoked, ApiKeyRebound),
        *(MemberAdded, MemberRemoved),
    )
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:  # noqa: C901 - one match
        """Return what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case PartnerApplied() as event:
                yield PARTNERS.new(
                    event,
                    stream_id=recorded.stream_id,
                    name=event.name or ERASED,
                    email=event.email or ERASED,
                    status="pending",
                    applied_at=at,
                )
            case PartnerApproved(partner_id=partner_id):
                yield Update(PARTNERS, _SQL.set_status, (partner_id, "approved"))
            case PartnerDeclined(partner_id=partner_id):
                yield Update(PARTNERS, _SQL.set_status, (partner_id, "declined"))
            case PartnerRevoked(partner_id=partner_id):
                yield Update(PARTNERS, _SQL.set_status, (partner_id, "revoked"))
            case PartnerSettingsChanged() as event:
                row = (event.partner_id, event.return_link, event.suppress_email)
                yield Update(PARTNERS, _SQL.set_settings, row)
            case SandboxReset(partner_id=partner_id, epoch=epoch):
                yield Update(PARTNERS, _SQL.reset_sandbox, (partner_id, epoch, at))
            case ApiKeyIssued() as event:
                yield API_KEYS.new(event, issued_at=at, revoked_at=None, revoked_later=False)
            case ApiKeyRevoked(key_id=key_id, effective_at=ends_at):
                row = (key_id, ends_at or at, ends_at is not None)
                yield Update(API_KEYS, _SQL.revoke_key, row)
            case ApiKeyRebound(key_id=key_id) as event:
                row = (key_id, event.secret_hash, event.hash_version)
                yield Update(API_KEYS, _SQL.rebind_key, row)
            case MemberAdded() as event:
                hashed = lookup_bytes(event.email_hash)
                yield MEMBERS.new(event, address_hash=hashed, added_at=at)
            case MemberRemoved(member_id=member_id):
                yield Update(MEMBERS, _SQL.remove_member, (member_id, at))
            case _:
                pass
