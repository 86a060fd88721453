"""API keys: `pk_<mode>_<partner id>.<key id>.<secret>` (contract section 5).

The secret is 43 characters of base62 for 256 random bits and 6 for a CRC-32 of them, so that a
secret scanner can tell a key from chance. Only a keyed hash is stored.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from typing import Final, NamedTuple

from service.core.errors import Refusal
from service.core.ids import base62, derived_id

_RANDOM_CHARACTERS: Final = 43
_CHECKSUM_CHARACTERS: Final = 6
_PARTS: Final = 3
_TOKEN: Final = re.compile("[!-~]+")
"""What can be seen in ASCII: no space within, nor anything else that a key never has."""
TOKEN_CHARACTERS_MAX: Final = 512
"""A longer token is malformed: nothing that we issue comes near."""


HASH_VERSION: Final = 2
"""Of the hashes that are stored today."""


class Token(NamedTuple):
    """A parsed bearer token."""

    mode: str
    partner_id: str
    key_id: str
    secret: str

    def __str__(self) -> str:
        """Return the token as its holder presents it."""
        return f"pk_{self.mode}_{self.partner_id}.{self.key_id}.{self.secret}"


def new_secret() -> str:
    """Draw a secret: 256 random bits and their checksum, in base62."""
    random = base62(secrets.randbits(256), _RANDOM_CHARACTERS)
    return random + base62(zlib.crc32(random.encode()), _CHECKSUM_CHARACTERS)


def hash_secret(pepper: bytes, token: Token, version: int = HASH_VERSION) -> bytes:
    """Return what is stored: HMAC-SHA-256; the secret has 256 bits, so no slow hash is needed.

    It covers the whole token, so that it is of no use in another key's row. Version 1, of keys that
    were issued before there was another, covers the secret alone. No secret has a NUL.
    """
    covered = token.secret if version == 1 else "\0".join(("claim-ledger API key v2", *token))
    return hmac.digest(pepper, covered.encode(), hashlib.sha256)


def successor_id(partner_id: str, key_id: str) -> str:
    """Return the id of the key that takes a key's place: it can be rolled once."""
    return derived_id("key", "successor", partner_id, key_id)


def reference_id(partner_id: str, actor: str, number: int) -> str:
    """Return the id of the key that somebody had made for the reference, counted from 0."""
    return derived_id("key", "reference", partner_id, actor, str(number))


def parse_authorization(header: str | None) -> Token:
    """Parse an Authorization header.

    Raises:
        Refusal: `auth_missing` without the header, `auth_invalid_format` for anything but
            `Bearer pk_live_<partner>.<key>.<secret>` or its `pk_test_` form, once.

    """
    if header is None:
        raise Refusal("auth_missing")
    scheme, _, token = header.partition(" ")
    token = token.strip(" ")
    mode = token[3:7]
    if (
        scheme.lower() != "bearer"
        or len(token) > TOKEN_CHARACTERS_MAX
        or not _TOKEN.fullmatch(token)
        or "," in token  # several headers: which of them counts is nobody's to guess
        or not token.startswith(("pk_live_", "pk_test_"))
    ):
        raise Refusal("auth_invalid_format")
    parts = token[8:].split(".")
    if len(parts) != _PARTS or not all(parts):
        raise Refusal("auth_invalid_format")
    return Token(mode, *parts)
