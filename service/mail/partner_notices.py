"""What a partner's people are told of its account, and who they are.

Of what happened to the account they are told who were of its team as it happened: whoever removes
the others afterwards, before the mail is sent, is not told alone.
"""

from collections.abc import Mapping
from typing import Final

from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRevoked,
    MemberAdded,
    MemberRemoved,
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


def told_of(before: Partner, event: Event) -> Mapping[str, str]:
    """Return the addresses of those who are told of an event: the team as it was before.

    So is whoever joins or leaves it by the event; the contact is not told of having joined.
    """
    people = addressees(before)
    match event:
        case MemberAdded(member_id=member_id, email=str(email)):
            others = {key: one for key, one in people.items() if one != email}
            return {**others, member_id: email}
        case MemberRemoved(member_id=member_id):
            member = before.members.get(member_id)
            return {**people, member_id: member.email} if member and member.email else people
        case _:
            return people


def kind_of(event: Event, whom: str) -> Kind:
    """Return what a notice about an event is counted with; `whom` is as for `letter_about`."""
    match event:
        case ApiKeyIssued() | ApiKeyRevoked() | PartnerSettingsChanged():
            return "key"
        case MemberAdded(member_id=member_id) if whom == member_id:
            return "any"  # it goes to any address that somebody enters
        case MemberAdded() | MemberRemoved():
            return "access"
        case _:
            return "any"


def letter_about(  # noqa: PLR0911 - one match
    partner: Partner, before: Partner, event: Event, console: str, whom: str
) -> Letter | None:
    """Return what a partner's people are told of an event; None where it does not hold any more.

    `before` is the partner as it was before the event. `whom` is one of `told_of`, to whom the
    letter goes; empty stands for several of them.
    """
    name, status = partner.name or "", partner.status
    match event:
        case MemberAdded() | MemberRemoved() if status == "approved":
            return _team_letter(partner, before, event, console, whom)
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


def _team_letter(
    partner: Partner, before: Partner, event: MemberAdded | MemberRemoved, console: str, whom: str
) -> Letter | None:
    """Return what is told of who joined or left a team, to them and to the others.

    The contact is not told of having joined, nor is whoever has left since; the others are.
    """
    name, team = partner.name or "", f"{console}/team"
    if isinstance(event, MemberAdded):
        if whom != event.member_id:
            return notices.member_added(partner_name=name, email=event.email or "", console=team)
        is_told = event.member_id in partner.members and event.email != partner.email
        return notices.invitation(partner_name=name, console=console) if is_told else None
    if whom == event.member_id:
        return notices.membership_ended(partner_name=name, console=console.rpartition("/")[0])
    member = before.members.get(event.member_id)
    if member is None:  # so long ago that it is not known any more
        return None
    return notices.member_removed(partner_name=name, email=member.email or "", console=team)


def _key_letter(partner: Partner, event: ApiKeyIssued | ApiKeyRevoked, keys: str) -> Letter | None:
    """Return what is told of a live key: of a roll, because of the old key's end."""
    name, key_id = partner.name or "", event.key_id
    if partner.keys[key_id].mode != "live":
        return None
    if isinstance(event, ApiKeyIssued):
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
