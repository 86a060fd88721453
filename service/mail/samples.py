"""A sample of every letter, for the team to look at."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from service.mail import messages, notices
from service.mail.letters import Letter

_AT: Final = datetime(2026, 3, 8, 14, 30, tzinfo=UTC)
_PARTNER: Final = "Ledger Books"
_SITE: Final = "https://example.com"
_CONSOLE: Final = f"{_SITE}/console"
_KEY: Final = "key_00000000000000000000000000"

SAMPLES: Final[Mapping[str, Letter]] = {
    "sign_in": messages.sign_in_letter(link=f"{_SITE}/sign-in/token", expires_at=_AT),
    "magic_link": messages.magic_link_letter(
        user_name="Ann",
        company_name="Bakery",
        partner_name=_PARTNER,
        link=f"{_SITE}/onboarding/token",
        expires_at=_AT,
    ),
    "application_approved": notices.application_approved(partner_name=_PARTNER, console=_CONSOLE),
    "application_declined": notices.application_declined(partner_name=_PARTNER, console=_CONSOLE),
    "invitation": notices.invitation(partner_name=_PARTNER, console=_CONSOLE),
    "member_added": notices.member_added(
        partner_name=_PARTNER, email="ann@example.com", console=_CONSOLE
    ),
    "member_removed": notices.member_removed(
        partner_name=_PARTNER, email="ann@example.com", console=_CONSOLE
    ),
    "membership_ended": notices.membership_ended(partner_name=_PARTNER, console=_CONSOLE),
    "key_issued": notices.key_issued(partner_name=_PARTNER, key_id=_KEY, console=_CONSOLE),
    "key_rolled": notices.key_rolled(
        partner_name=_PARTNER,
        key_id=_KEY,
        new_key_id="key_11111111111111111111111111",
        ends_at=_AT,
        console=_CONSOLE,
    ),
    "return_url_changed": notices.return_url_changed(
        partner_name=_PARTNER, is_set=True, console=_CONSOLE
    ),
    "key_revoked": notices.key_revoked(partner_name=_PARTNER, key_id=_KEY, console=_CONSOLE),
    "passkey_added": notices.passkey_added(link=f"{_SITE}/security"),
    "passkey_removed": notices.passkey_removed(link=f"{_SITE}/security"),
    "passkeys_reset": notices.passkeys_reset(link=f"{_SITE}/security"),
    "webhook_paused": notices.webhook_paused(
        partner_name=_PARTNER, is_gone=False, console=f"{_CONSOLE}/webhooks"
    ),
    "partner_disconnected": notices.partner_disconnected(
        partner_name=_PARTNER, entity_id="ent_00000000000000000000000000", console=_CONSOLE
    ),
    "stage_changed": notices.stage_changed(
        company_name="Bakery", stage="letter_before_action", claim=f"{_SITE}/account"
    ),
}
"""By the name of the function that writes the letter."""
