"""Ids: prefixed, random, sortable by time; and ids derived from natural keys (decision 1)."""

import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base32 in lower case: no i, l, o or u, so ids survive being read aloud."""

_PAIRS = [first + second for first in CROCKFORD for second in CROCKFORD]
"""Two characters for ten bits: three ids are drawn for each claim."""

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

NewId = Callable[[str, datetime], str]
"""Draws a new id for a prefix and a moment: `clm_` + 26 characters."""


def new_id(prefix: str, moment: datetime) -> str:
    """Draw `<prefix>_<26 characters>`: 48 bits of milliseconds, then 80 random bits (a ULID)."""
    milliseconds = int(moment.timestamp() * 1000) & (2**48 - 1)
    return f"{prefix}_{base32(milliseconds << 80 | int.from_bytes(os.urandom(10)))}"


def drawn_at(drawn: str) -> datetime | None:
    """Return when an id that `new_id` drew was; None for one that no moment has."""
    milliseconds = 0
    for character in drawn.rpartition("_")[2][:10]:  # 50 bits, of which two are 0
        milliseconds = milliseconds << 5 | CROCKFORD.index(character)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError):
        return None


def derived_id(prefix: str, *parts: str) -> str:
    """Derive an id from its parts: `<prefix>_` and 128 bits of their hash."""
    return f"{prefix}_{base32(stream_id(*parts).int)}"


def once_id(prefix: str, reference: str | None, *parts: str) -> str | None:
    """Return the id of what a reference makes, the same every time; None without a reference."""
    return None if reference is None else derived_id(prefix, "once", *parts, reference)


def stream_id(*parts: str) -> UUID:
    """Derive a stream's id from its natural key.

    SHA-256 over the parts, each preceded by its length in bytes (8 bytes, big-endian), so that
    no two lists of parts run together; the first 128 bits, marked as UUID version 8 (RFC 9562).
    """
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    value = int.from_bytes(digest.digest()[:16], "big")
    value = value & ~(0xF << 76) | 0x8 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return UUID(int=value)


def base62(value: int, characters: int) -> str:
    """Return a number in base62, cut to its lowest digits."""
    digits: list[str] = []
    for _ in range(characters):
        value, digit = divmod(value, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))


def base32(value: int) -> str:
    """Return 128 bits as 26 characters of Crockford's base32, in lower case."""
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])
