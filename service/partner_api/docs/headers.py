"""Response headers, described once, and which of them an error has."""

from collections.abc import Sequence
from typing import Final

_INTEGER: Final[dict[str, object]] = {"type": "integer", "minimum": 0}
_SECONDS: Final[dict[str, object]] = {"type": "integer", "minimum": 1}

_HEADERS: Final[dict[str, tuple[str, dict[str, object], object]]] = {
    "X-Request-Id": (
        "Id of this request. Quote it when you ask us about it.",
        {"type": "string", "pattern": "^req_[0-9a-z]{26}$"},
        "req_01jexample0000000000000000",
    ),
    "X-RateLimit-Limit": (
        (
            "Requests that your account may make in a minute; where a 429 refuses a network, the "
            "failed authentications that it may have, which the other two are then about, too."
        ),
        _SECONDS,
        120,
    ),
    "X-RateLimit-Remaining": ("Requests left in the window.", _INTEGER, 119),
    "X-RateLimit-Reset": (
        "When the oldest request of the last minute makes room for another: Unix epoch in ms.",
        _INTEGER,
        1772360130123,
    ),
    "Retry-After": ("Whole seconds to wait before the next attempt.", _SECONDS, 1),
    "Idempotent-Replayed": (
        "Present on a replay: an earlier request under the same reference made this.",
        {"type": "string", "const": "true"},
        "true",
    ),
    "Idempotent-Payload-Match": (
        "On a replay: whether the known fields are as in the first body. Absent after an erasure.",
        {"type": "string", "enum": ["true", "false"]},
        "true",
    ),
    "Cache-Control": ("Every answer is yours alone.", {"const": "no-store"}, "no-store"),
    "Link": (
        "Where the error is explained.",
        {"type": "string", "pattern": '^<[^>]+#error-[a-z_]+>; rel="help"$'},
        '<https://api.example.com/docs#error-entity_not_found>; rel="help"',
    ),
    "WWW-Authenticate": ("The scheme to use.", {"type": "string", "const": "Bearer"}, "Bearer"),
}
HEADERS: Final = {
    name: dict(zip(("description", "schema", "example"), row, strict=True))
    for name, row in _HEADERS.items()
}
"""Name to description, schema and example, as OpenAPI has them."""

_EVERYWHERE: Final = {"X-Request-Id": True, "Cache-Control": True}
RATE_LIMIT: Final = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")

_BEFORE_THE_LIMIT: Final = frozenset(
    {
        "auth_partner_not_approved",
        "internal_error",
        "not_found",
        "rate_limited",
        "service_unavailable",
    }
)
"""Codes that may be returned before the partner is charged, so the headers are optional."""


def success_headers(own: dict[str, bool]) -> dict[str, bool]:
    """Return the headers of a success; True: always present."""
    return _EVERYWHERE | dict.fromkeys(RATE_LIMIT, True) | own


def error_headers(status: int, codes: Sequence[str]) -> dict[str, bool]:
    """Return the headers of an error with one of these codes; True: always present."""
    headers = _EVERYWHERE | {"Link": True}
    if status == 401:  # noqa: PLR2004 - RFC 9110, 15.5.2
        return headers | {"WWW-Authenticate": True}
    headers |= dict.fromkeys(RATE_LIMIT, _BEFORE_THE_LIMIT.isdisjoint(codes))
    return headers | ({"Retry-After": True} if status in {429, 503} else {})
