"""From facts about partners to the rows that authentication reads."""

from collections.abc import Iterable

from service.ledger.events import ERASED, Recorded
from service.ledger.ledger import Write
from service.ledger.sql import Sql
from service.partners.events import (
    ApiKeyIssued,
    ApiKeyRevoked,
    PartnerApplied,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
)

_INSERT_PARTNER = Sql("projections.partners", "insert_partner")
_SET_STATUS = Sql("projections.partners", "set_status")
_SET_SETTINGS = Sql("projections.partners", "set_settings")
_INSERT_KEY = Sql("projections.partners", "insert_key")
_REVOKE_KEY = Sql("projections.partners", "revoke_key")


class PartnersProjector:
    """Tables `partners` and `api_keys`."""

    name = "partners"
    version = 1

    def project(self, recorded: Recorded) -> Iterable[Write]:
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
            case ApiKeyIssued() as event:
                yield Write(
                    _INSERT_KEY,
                    (event.key_id, event.partner_id, event.mode, event.secret_hash, at),
                )
            case ApiKeyRevoked(key_id=key_id):
                yield Write(_REVOKE_KEY, (key_id, at))
            case _:
                pass
