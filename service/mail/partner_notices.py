"""What a partner's people are told of its account, and who they are."""

from collections.abc import Mapping
from typing import Final

from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRevoked,
    Partner,
    PartnerApproved,
    PartnerDeclined,
    PartnerSettingsChanged,
)
from service.ledger.events import Event
from service.mail import notices
from service.mail.letters import Letter
from service.mail.recipients import Kind
from service.partners.keys import successor_id

ADDRESSEES_MAX: Final = 20
"""Of a partner's team, who are told of one event."""
CONTACT: Final = "contact"
"""Stands for a member's id where a partner has a contact and no team."""


def addressees(partner: Partner) -> Mapping[str, str]:
    """Return the addresses of a partner's people, by the ids of their membership; few of many.

    Its contact first, then who has been there longest; the contact alone where nobody is of its
    team yet. None once the partner was erased.
    """
    team = {key: one.email for key, one in partner.members.items() if one.email}
    if not team:
        return {CONTACT: partner.email} if partner.email else {}
    contact_first = sorted(team.items(), key=lambda item: item[1] != partner.email)
    return dict(contact_first[:ADDRESSEES_MAX])


def kind_of(event: Event) -> Kind:
    """Return what a notice about an event is counted with."""
    weighs = (ApiKeyIssued, ApiKeyRevoked, PartnerSettingsChanged)
    return "key" if isinstance(event, weighs) else "any"


def letter_about(partner: Partner, before: Partner, event: Event, console: str) -> Letter | None:
    """Return what a partner's people are told of an event; None where it does not hold any more.

    `before` is the partner as it was before the event.
    """
    name, status = partner.name or "", partner.status
    match event:
        case PartnerApproved() if status == "approved":
            return notices.application_approved(partner_name=name, console=console)
        case PartnerDeclined() if status == "declined":
            return notices.application_declined(partner_name=name, console=console)
        case PartnerSettingsChanged(return_url=url) if status == "approved":
            if url == before.return_url or url != partner.return_url:
                return None  # another setting, or it was changed again, which another mail says
            return notices.return_url_changed(
                partner_name=name, is_set=bool(url), console=f"{console}/settings"
            )
        case ApiKeyIssued() | ApiKeyRevoked() if status == "approved":
            return _key_letter(partner, event, f"{console}/keys")
        case _:
            return None


def _key_letter(partner: Partner, event: ApiKeyIssued | ApiKeyRevoked, keys: str) -> Letter | None:
    """Return what is told of a live key: of a roll once, because of the old key's end."""
    name, key_id = partner.name or "", event.key_id
    if partner.keys[key_id].mode != "live":
        return None
    if isinstance(event, ApiKeyIssued):
        successors = {successor_id(partner.partner_id, one) for one in partner.keys}
        if key_id in successors:
            return None
        return notices.key_issued(partner_name=name, key_id=key_id, console=keys)
    new_key_id = successor_id(partner.partner_id, key_id)
    if new_key_id not in partner.keys:
        return notices.key_revoked(partner_name=name, key_id=key_id, console=keys)
    return notices.key_rolled(
        partner_name=name,
        key_id=key_id,
        new_key_id=new_key_id,
        ends_at=event.effective_at,
        console=keys,
    )
