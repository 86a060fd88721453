"""What may happen to a partner account. Pure: state in, events out, or a refusal."""

from service.caller import Mode
from service.errors import Refusal
from service.ledger.events import Event
from service.partners.events import (
    ApiKeyIssued,
    ApiKeyRevoked,
    Partner,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
)


def approve(partner: Partner) -> list[Event]:
    """Approve a pending or declined partner; approving twice changes nothing."""
    match _known(partner).status:
        case "approved":
            return []
        case "pending" | "declined":
            return [PartnerApproved(partner_id=partner.partner_id)]
        case status:
            raise Refusal("partner_state", f"A {status} partner cannot be approved.")


def decline(partner: Partner) -> list[Event]:
    """Decline a pending partner; declining twice changes nothing."""
    match _known(partner).status:
        case "declined":
            return []
        case "pending":
            return [PartnerDeclined(partner_id=partner.partner_id)]
        case status:
            raise Refusal("partner_state", f"A partner that is {status} cannot be declined.")


def revoke(partner: Partner) -> list[Event]:
    """End a partner's access for good; revoking twice changes nothing."""
    match _known(partner).status:
        case "revoked":
            return []
        case "approved":
            return [PartnerRevoked(partner_id=partner.partner_id)]
        case status:
            raise Refusal("partner_state", f"A {status} partner has no access to revoke.")


def change_settings(
    partner: Partner, *, return_link: bool | None, suppress_email: bool | None
) -> list[Event]:
    """Change what is given, keep what is None."""
    wanted = (
        _known(partner).return_link if return_link is None else return_link,
        partner.suppress_email if suppress_email is None else suppress_email,
    )
    if wanted == (partner.return_link, partner.suppress_email):
        return []
    return [
        PartnerSettingsChanged(
            partner_id=partner.partner_id, return_link=wanted[0], suppress_email=wanted[1]
        )
    ]


def issue_key(partner: Partner, *, key_id: str, mode: Mode, secret_hash: bytes) -> list[Event]:
    """Issue a key; only an approved partner can have one (contract 5.4)."""
    if _known(partner).status != "approved":
        raise Refusal("auth_partner_not_approved")
    return [
        ApiKeyIssued(
            partner_id=partner.partner_id, key_id=key_id, mode=mode, secret_hash=secret_hash
        )
    ]


def revoke_key(partner: Partner, key_id: str) -> list[Event]:
    """Revoke a key; revoking twice changes nothing."""
    key = _known(partner).keys.get(key_id)
    if key is None:
        raise Refusal("key_not_found")
    if key.revoked:
        return []
    return [ApiKeyRevoked(partner_id=partner.partner_id, key_id=key_id)]


def _known(partner: Partner) -> Partner:
    if not partner.status:
        raise Refusal("partner_not_found")
    return partner
