"""What may happen to an onboarding. Pure: state in, events out, or a refusal."""

from datetime import datetime

import msgspec

from service.core.errors import Refusal
from service.facts import replays
from service.facts.caller import Caller
from service.facts.onboardings import Onboarding, OnboardingCompleted, OnboardingStarted
from service.ledger.encryption import DataKey
from service.onboardings.wire import Confirmed, OnboardingRequest


def start(
    caller: Caller,
    request: OnboardingRequest,
    key: DataKey,
    *,
    onboarding_id: str,
    entity_id: str,
    magic_link_hash: bytes | None,
    expires_at: datetime | None,
) -> OnboardingStarted:
    """Start an onboarding; without a magic link (in test mode) no mail is sent."""
    version = replays.request_version(type(request))
    return OnboardingStarted(
        onboarding_id=onboarding_id,
        entity_id=entity_id,
        partner_id=caller.partner_id,
        partner_user_id=request.partner_user_id,
        fingerprint=replays.fingerprint(key, request, version),
        fingerprint_version=version,
        mail_wanted=magic_link_hash is not None and not caller.suppress_email,
        magic_link_hash=magic_link_hash,
        expires_at=expires_at,
        link_returned=magic_link_hash is not None and caller.return_link,
        details=msgspec.to_builtins(request),
    )


def proof(started: OnboardingStarted, address_hash: str, visitor: str | None) -> str:
    """Return how a visitor with the link proves to be the onboarding's person.

    `address_hash` is the look-up of the onboarding's address, `visitor` that of whoever is signed
    in. A link that went into our mail alone is proof of the mailbox; one that the partner got, too,
    is none. Refuses with `onboarding_needs_sign_in`.
    """
    if visitor == address_hash:
        return "sign_in"
    if started.link_returned is False:
        return "mailed_link"
    raise Refusal("onboarding_needs_sign_in")


def address_hint(email: str) -> str:
    """Return what of an address its person recognises, and nobody can write to: `b…@example.com`.

    For a link that anybody may have got. Nothing of a mailbox of one letter is shown.
    """
    mailbox, at, domain = email.rpartition("@")
    return f"{mailbox[:1] if len(mailbox) > 1 else ''}…{at}{domain}"


def complete(
    started: OnboardingStarted, confirmed: Confirmed | None, proved_by: str
) -> OnboardingCompleted:
    """Complete an onboarding, with the details that its person confirmed on the page, if any."""
    return OnboardingCompleted(
        onboarding_id=started.onboarding_id,
        entity_id=started.entity_id,
        partner_id=started.partner_id,
        proved_by=proved_by,
        details=None if confirmed is None else confirmed.details(started.details or {}),
    )


def check_link(onboarding: Onboarding, *, expired: bool) -> None:
    """Refuse a magic link that was used or has expired."""
    if onboarding.completed:
        raise Refusal("magic_link_already_used")
    if expired:
        raise Refusal("magic_link_expired")
