"""Cursors of `GET /v1/events`: a place in the log, and which event it was of which partner.

A log that was restored to an earlier state may have another event in that place, or none. Whoever
went on from there would miss what was written anew, so such a cursor is refused.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from service.core.errors import invalid

LOST: Final = (
    "not a cursor of yours, or of an event that is gone since the service was restored to an "
    "earlier state: read again without `after`, and leave out the events whose `id` you have"
)

_PREFIX = "evc_"
_PLACE, _CHECK = 8, 16
"""Bytes. Together they need no padding in base64."""


def cursor(partner_id: str, position: int, leaf_hash: bytes | None) -> str:
    """Return the cursor of what follows an event; position 0: of everything."""
    raw = position.to_bytes(_PLACE, "big") + _check(partner_id, leaf_hash)
    return _PREFIX + urlsafe_b64encode(raw).decode()


def place_of(text: str) -> int:
    """Return the position that a cursor names; refuses what is no cursor."""
    raw = text.removeprefix(_PREFIX).encode()
    try:
        place = urlsafe_b64decode(raw)[:_PLACE]
    except ValueError:
        place = b""
    position = int.from_bytes(place, "big")
    if len(place) < _PLACE or position >= 2**63:
        raise invalid("after", "not a cursor of this list")
    return position


def check(text: str, partner_id: str, leaf_hash: bytes | None) -> None:
    """Refuse a cursor unless it is the partner's, and of the event that the log has there."""
    if text != cursor(partner_id, place_of(text), leaf_hash):
        raise invalid("after", LOST)


def _check(partner_id: str, leaf_hash: bytes | None) -> bytes:
    return hashlib.sha256(partner_id.encode() + b"\0" + (leaf_hash or b"")).digest()[:_CHECK]
