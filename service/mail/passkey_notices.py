"""What a person is told of their passkeys, whoever added or removed them."""

from typing import Final

from service.facts.passkeys import PasskeyAdded, PasskeyRemoved, PasskeysReset
from service.mail import notices
from service.mail.letters import Letter

PasskeyEvent = PasskeyAdded | PasskeyRemoved | PasskeysReset
PASSKEY_EVENTS: Final = (PasskeyAdded, PasskeyRemoved, PasskeysReset)


def passkey_letter(event: PasskeyEvent, security: str) -> Letter:
    """Return what is told of an event; `security` is the page of the person's passkeys."""
    match event:
        case PasskeyAdded():
            return notices.passkey_added(link=security)
        case PasskeyRemoved():
            return notices.passkey_removed(link=security)
        case PasskeysReset():
            return notices.passkeys_reset(link=security)
