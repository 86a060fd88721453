"""Which browser asked for a sign-in link, and the code that it shows for other browsers.

A browser is known by a random token in a cookie. Its code follows from the token, so that nothing
has to be stored, and reveals nothing of it.
"""

import hmac
import re
import secrets
from typing import Final

from service.ledger.service_keys import Secrets, token_hash

LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Of codes: no vowels, so that none is a word (RFC 8628, 6.1)."""
CODE_LENGTH: Final = 8
ENTERED_CHARACTERS_MAX: Final = 64
"""Of a code as it may be entered, with spaces and the like."""

_TOKEN_BYTES: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_PURPOSE: Final = "sign-in-code"


def browser_token(known: str | None = None) -> str:
    """Return the token of a browser: the one that it has, if it is one of ours, or a new one."""
    return known if known and _TOKEN.fullmatch(known) else secrets.token_urlsafe(_TOKEN_BYTES)


def browser_hash(token: str) -> str:
    """Return what is stored of a browser's token: its SHA-256, hex."""
    return token_hash(token).hex()


def browser_code(keys: Secrets, hashed: str) -> str:
    """Return the code of the browser whose token has this hash, such as `BCDF-GHJK`."""
    number, letters = int.from_bytes(token_hash(keys.link_token(_PURPOSE, hashed)), "big"), ""
    for _ in range(CODE_LENGTH):
        number, digit = divmod(number, len(LETTERS))
        letters += LETTERS[digit]
    return f"{letters[: CODE_LENGTH // 2]}-{letters[CODE_LENGTH // 2 :]}"


def is_code_of(keys: Secrets, hashed: str, entered: str) -> bool:
    """Return whether a person entered that code, in whatever case and spacing."""
    if len(entered) > ENTERED_CHARACTERS_MAX:
        return False
    letters = "".join(one for one in entered.upper() if one in LETTERS)
    return hmac.compare_digest(letters, browser_code(keys, hashed).replace("-", ""))
