"""What may happen to a partner account. Pure: state in, events out, or a refusal."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from service.core.errors import Refusal, invalid
from service.facts.caller import Mode
from service.facts.partners import (
    ApiKeyIssued,
    ApiKeyRebound,
    ApiKeyRevoked,
    Key,
    MemberAdded,
    MemberRemoved,
    Partner,
    PartnerApproved,
    PartnerDeclined,
    PartnerRevoked,
    PartnerSettingsChanged,
    PartnerWebsiteVerified,
    SandboxReset,
)
from service.facts.people import person_id
from service.ledger.events import Event
from service.partners.keys import HASH_VERSION
from service.partners.wire import leads_to

KEYS_MAX: Final = 50
"""Keys of a partner that work at one time."""
MEMBERS_MAX: Final = 100
REFERENCE_NAME: Final = "API reference"
"""Of the keys that the reference's page was lent."""

_SHOWN_THEN: Final = (
    "Its token was shown then and cannot be shown again: if nobody has it, roll that key."
)


def approve(
    partner: Partner, website: str | None = None, expected_version: int | None = None
) -> list[Event]:
    """Approve a pending or declined partner; approving twice changes nothing.

    `website` is one that the team has verified. `expected_version` is the one of its status when
    this was decided: what was decided meanwhile is refused with `form_outdated`. Refuses with
    `partner_state` another website for a partner that is approved: see `verify_website`.
    """
    is_unsaid = expected_version is None and website is None
    is_same = is_unsaid or partner.verified_website == website
    if _known(partner).status == "approved" and is_same:
        return []
    _refuse_other(partner.status_version, expected_version)
    if partner.status == "approved":
        raise Refusal("partner_state", "This partner is approved already, with another website.")
    if partner.status not in {"pending", "declined"}:
        raise Refusal("partner_state", f"A {partner.status} partner cannot be approved.")
    return [PartnerApproved(partner_id=partner.partner_id, website=website)]


def verify_website(
    partner: Partner, website: str | None, expected_version: int | None = None
) -> list[Event]:
    """Record an approved partner's verified website, None for none any more.

    The same website again changes nothing. `expected_version` is as that of `approve`.
    """
    if _known(partner).status != "approved":
        message = "The website of a partner is verified as it is approved, or while it is."
        raise Refusal("partner_state", message)
    if partner.verified_website == website:
        return []
    _refuse_other(partner.status_version, expected_version)
    return [PartnerWebsiteVerified(partner_id=partner.partner_id, website=website)]


def decline(
    partner: Partner, reason: str | None = None, expected_version: int | None = None
) -> list[Event]:
    """Decline a pending partner, and tell it why; declining twice changes nothing.

    `expected_version` is as that of `approve`.
    """
    is_same = expected_version is None or partner.reason == reason
    if _known(partner).status == "declined" and is_same:
        return []
    _refuse_other(partner.status_version, expected_version)
    if partner.status != "pending":
        message = f"A partner that is {partner.status} cannot be declined."
        raise Refusal("partner_state", message)
    return [PartnerDeclined(partner_id=partner.partner_id, reason=reason)]


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
    partner: Partner,
    *,
    return_link: bool | None,
    suppress_email: bool | None,
    return_url: str | None = None,
    expected_version: int | None = None,
) -> list[Event]:
    """Change what is given, keep what is None; an empty URL is none.

    `expected_version` is the one of the settings when these were chosen: what was changed meanwhile
    is not undone, but refused with `form_outdated`. Refuses with `partner_state` a revoked partner,
    and with `validation_failed` a new URL that leads elsewhere than to the verified website.
    """
    if _known(partner).status == "revoked":
        raise Refusal("partner_state", "The settings of a revoked partner cannot be changed.")
    wanted = PartnerSettingsChanged(
        partner_id=partner.partner_id,
        return_link=partner.return_link if return_link is None else return_link,
        suppress_email=partner.suppress_email if suppress_email is None else suppress_email,
        return_url=partner.return_url if return_url is None else return_url or None,
    )
    now = PartnerSettingsChanged(
        partner_id=partner.partner_id,
        return_link=partner.return_link,
        suppress_email=partner.suppress_email,
        return_url=partner.return_url,
    )
    if wanted != now:
        _refuse_other(partner.settings_version, expected_version)
    url, website = wanted.return_url, partner.verified_website
    if url and url != now.return_url and not leads_to(url, website):
        told = f"not on {website} or below it, the website that our team verified"
        raise invalid("return_url", told)
    return [] if wanted == now else [wanted]


def issue_key(
    partner: Partner,
    *,
    key_id: str,
    mode: Mode,
    secret_hash: bytes,
    now: datetime,
    name: str | None = None,
) -> list[Event]:
    """Issue a key; only an approved partner can have one (contract 5.4), and KEYS_MAX of them.

    The same id twice is refused: its token was shown then, and cannot be shown again.
    """
    if _known(partner).status != "approved":
        raise Refusal("auth_partner_not_approved")
    if key_id in partner.keys:
        raise Refusal(
            "key_state", f"{key_id} has already been issued by this request. {_SHOWN_THEN}"
        )
    if sum(not key.has_ended(now) for key in partner.keys.values()) >= KEYS_MAX:
        message = f"A partner can have {KEYS_MAX} keys that work. Revoke one first."
        raise Refusal("limit_reached", message)
    return [
        ApiKeyIssued(
            partner_id=partner.partner_id,
            key_id=key_id,
            mode=mode,
            secret_hash=secret_hash,
            hash_version=HASH_VERSION,
            name=name,
        )
    ]


def lend_key(
    partner: Partner,
    *,
    key_id: str,
    replaces: str | None,
    secret_hash: bytes,
    now: datetime,
    ends_at: datetime,
) -> list[Event]:
    """Issue a test key that ends by itself; the one that it replaces ends at once."""
    ended = [] if replaces is None else revoke_key(partner, replaces, now=now)
    issued = issue_key(
        partner if replaces is None else _without(partner, replaces),
        key_id=key_id,
        mode="test",
        secret_hash=secret_hash,
        now=now,
        name=REFERENCE_NAME,
    )
    ends = ApiKeyRevoked(partner_id=partner.partner_id, key_id=key_id, effective_at=ends_at)
    return [*issued, ends, *ended]


def revoke_key(partner: Partner, key_id: str, *, now: datetime) -> list[Event]:
    """Revoke a key at once; revoking twice, or after its end has come, changes nothing."""
    if _key(partner, key_id).has_ended(now):
        return []
    return [ApiKeyRevoked(partner_id=partner.partner_id, key_id=key_id)]


def rebind_key(partner: Partner, key_id: str, *, secret_hash: bytes, now: datetime) -> list[Event]:
    """Bind a key's hash to its whole token; one that is bound, or has ended, stays as it is."""
    key = _key(partner, key_id)
    if key.hash_version == HASH_VERSION or key.has_ended(now) or partner.status != "approved":
        return []
    return [
        ApiKeyRebound(
            partner_id=partner.partner_id,
            key_id=key_id,
            secret_hash=secret_hash,
            hash_version=HASH_VERSION,
        )
    ]


def roll_key(
    partner: Partner,
    key_id: str,
    *,
    new_key_id: str,
    secret_hashes: Mapping[Mode, bytes],
    now: datetime,
    ends_at: datetime,
) -> list[Event]:
    """Issue a key in a key's place, of the same mode and name; the old one ends then, or at once.

    `secret_hashes` has the hash of the new key in either mode.

    A key that has an end is refused: an earlier end stays, and a form that is sent twice does not
    leave a key behind that nobody knows.
    """
    old = _key(partner, key_id)
    if new_key_id in partner.keys:
        raise Refusal(
            "key_state", f"{new_key_id} has already taken this key's place. {_SHOWN_THEN}"
        )
    if old.revoked or old.ends_at is not None:
        raise Refusal("key_state", "This key has been revoked, or has already been rolled.")
    later = ends_at if ends_at > now else None
    ends = ApiKeyRevoked(partner_id=partner.partner_id, key_id=key_id, effective_at=later)
    mode: Mode = "live" if old.mode == "live" else "test"
    issued = issue_key(
        partner if later else _without(partner, key_id),
        key_id=new_key_id,
        mode=mode,
        secret_hash=secret_hashes[mode],
        now=now,
        name=old.name,
    )
    return [*issued, ends]


def reset_sandbox(partner: Partner, epoch: int) -> list[Event]:
    """Begin an epoch of the sandbox, the one after the present; asking again changes nothing."""
    if _known(partner).status != "approved":
        raise Refusal("partner_state", "Only an approved partner has a sandbox.")
    if epoch != partner.sandbox_epoch + 1:
        return []
    return [SandboxReset(partner_id=partner.partner_id, epoch=epoch)]


def add_member(
    partner: Partner, *, member_id: str, email: str, email_hash: str, by_colleague: bool
) -> list[Event]:
    """Add a person to a partner's team; adding an address twice changes nothing.

    Colleagues add people to an approved partner alone: anybody can apply, with any text, and name
    any address. The service's team adds people to each.
    """
    if _known(partner).status != "approved" and by_colleague:
        raise Refusal("auth_partner_not_approved")
    if any(one.email_hash == email_hash for one in partner.members.values()):
        return []
    if len(partner.members) >= MEMBERS_MAX:
        message = f"A team can have {MEMBERS_MAX} members. Remove one first."
        raise Refusal("limit_reached", message)
    return [member_added(partner.partner_id, member_id, email, email_hash)]


def member_added(partner_id: str, member_id: str, email: str, email_hash: str) -> MemberAdded:
    """Return the fact that a person joined a team."""
    return MemberAdded(partner_id, member_id, email, email_hash, person_id(email_hash))


def remove_member(partner: Partner, member_id: str) -> list[Event]:
    """Remove a person from a partner's team; somebody has to stay in an approved one's.

    Whoever applied stays until the review: they could apply again and again meanwhile.
    """
    if member_id not in _known(partner).members:
        raise Refusal("member_not_found")
    if partner.status == "pending" and is_applicant(partner, member_id):
        raise Refusal("applicant_stays")
    if len(partner.members) == 1 and partner.status == "approved":
        raise Refusal("last_member")
    return [MemberRemoved(partner_id=partner.partner_id, member_id=member_id)]


def is_applicant(partner: Partner, member_id: str) -> bool:
    """Return whether this member applied in the console.

    An account that the service's team added has no `use`: its people were added by others.
    """
    email = partner.members[member_id].email
    return partner.use is not None and email == partner.email


def _refuse_other(version: int, expected: int | None) -> None:
    if expected is not None and version != expected:
        raise Refusal("form_outdated")


def _without(partner: Partner, key_id: str) -> Partner:
    """Return the partner as it is when one of its keys has ended: that makes room for another."""
    staying = {one: key for one, key in partner.keys.items() if one != key_id}
    return msgspec.structs.replace(partner, keys=staying)


def _key(partner: Partner, key_id: str) -> Key:
    key = _known(partner).keys.get(key_id)
    if key is None:
        raise Refusal("key_not_found")
    return key


def _known(partner: Partner) -> Partner:
    if not partner.status:
        raise Refusal("partner_not_found")
    return partner
