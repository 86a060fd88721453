"""From facts about partners to the rows that authentication and the console read."""

from collections.abc import Iterable
from typing import ClassVar

from service.ledger.events import ERASED, Event, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.partners.events import (
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

_INSERT_PARTNER = Sql("projections.partners", "insert_partner")
_SET_STATUS = Sql("projections.partners", "set_status")
_SET_SETTINGS = Sql("projections.partners", "set_settings")
_RESET_SANDBOX = Sql("projections.partners", "reset_sandbox")
_INSERT_KEY = Sql("projections.partners", "insert_key")
_REVOKE_KEY = Sql("projections.partners", "revoke_key")
_INSERT_MEMBER = Sql("projections.partners", "insert_member")
_REMOVE_MEMBER = Sql("projections.partners", "remove_member")


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
        """Answer what this event changes."""
        at = recorded.meta.at
        match recorded.event:
            case PartnerApplied() as event:
                name, email = event.name or ERASED, event.email or ERASED
                yield Write(
                    _INSERT_PARTNER,
                    (event.partner_id, recorded.stream_id, name, email, "pending", at),
                )
            case PartnerApproved(partner_id=partner_id):
                yield Write(_SET_STATUS, (partner_id, "approved"))
            case PartnerDeclined(partner_id=partner_id):
                yield Write(_SET_STATUS, (partner_id, "declined"))
            case PartnerRevoked(partner_id=partner_id):
                yield Write(_SET_STATUS, (partner_id, "revoked"))
            case PartnerSettingsChanged() as event:
                yield Write(
                    _SET_SETTINGS, (event.partner_id, event.return_link, event.suppress_email)
                )
            case SandboxReset(partner_id=partner_id, epoch=epoch):
                yield Write(_RESET_SANDBOX, (partner_id, epoch, at))
            case ApiKeyIssued() as event:
                yield Write(
                    _INSERT_KEY,
                    (event.key_id, event.partner_id, event.mode, event.secret_hash, at),
                )
            case ApiKeyRevoked(key_id=key_id, effective_at=ends_at):
                yield Write(_REVOKE_KEY, (key_id, ends_at or at, ends_at is not None))
            case MemberAdded() as event:
                hashed = None if event.email_hash is None else bytes.fromhex(event.email_hash)
                yield Write(_INSERT_MEMBER, (event.member_id, event.partner_id, hashed, at))
            case MemberRemoved(member_id=member_id):
                yield Write(_REMOVE_MEMBER, (member_id, at))
            case _:
                pass
