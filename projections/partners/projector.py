"""From facts about partners to the rows that authentication and the console read."""

from collections.abc import Iterable
from typing import ClassVar

from service.facts.partners import (
    ApiKeyIssued,
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
from service.ledger.events import ERASED, Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import queries

_SQL = queries("projections.partners")


class PartnersProjector:
    """Tables `partners`, `api_keys` and `members`."""

    name = "partners"
    version = 1
    tables: ClassVar[tuple[str, ...]] = ("partners", "api_keys", "members")
    topics: ClassVar[tuple[type[Event], ...]] = (
        *(PartnerApplied, PartnerApproved, PartnerDeclined, PartnerRevoked),
        *(PartnerSettingsChanged, SandboxReset, ApiKeyIssued, ApiKeyRevoked),
        *(MemberAdded, MemberRemoved),
    )
    reads_personal = True

    def project(self, recorded: Recorded) -> Iterable[Write]:  # noqa: C901 - one match
        """Return what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case PartnerApplied() as event:
                name, email = event.name or ERASED, event.email or ERASED
                yield Write(
                    _SQL.insert_partner,
                    (event.partner_id, recorded.stream_id, name, email, "pending", at),
                )
            case PartnerApproved(partner_id=partner_id):
                yield Write(_SQL.set_status, (partner_id, "approved"))
            case PartnerDeclined(partner_id=partner_id):
                yield Write(_SQL.set_status, (partner_id, "declined"))
            case PartnerRevoked(partner_id=partner_id):
                yield Write(_SQL.set_status, (partner_id, "revoked"))
            case PartnerSettingsChanged() as event:
                yield Write(
                    _SQL.set_settings, (event.partner_id, event.return_link, event.suppress_email)
                )
            case SandboxReset(partner_id=partner_id, epoch=epoch):
                yield Write(_SQL.reset_sandbox, (partner_id, epoch, at))
            case ApiKeyIssued() as event:
                yield Write(
                    _SQL.insert_key,
                    (event.key_id, event.partner_id, event.mode, event.secret_hash, at),
                )
            case ApiKeyRevoked(key_id=key_id, effective_at=ends_at):
                yield Write(_SQL.revoke_key, (key_id, ends_at or at, ends_at is not None))
            case MemberAdded() as event:
                hashed = None if event.email_hash is None else bytes.fromhex(event.email_hash)
                yield Write(_SQL.insert_member, (event.member_id, event.partner_id, hashed, at))
            case MemberRemoved(member_id=member_id):
                yield Write(_SQL.remove_member, (member_id, at))
            case _:
                pass
