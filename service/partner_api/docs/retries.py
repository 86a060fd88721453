"""`x-retry` in the OpenAPI document: what a client retries, made from the error table.

Client libraries obey it, so that no rule stands in two places.
"""

from collections.abc import Sequence
from typing import Any, Final

from service.core.errors import ERRORS
from service.partner_api.endpoints import Endpoint

Json = dict[str, Any]

_WORDS: Final = """\
What a client retries, with the identical request, exponential backoff and jitter. `codes` has a row
for each error code: whether it is retried and, if so, whether not before the seconds of the
`Retry-After` header (`header`) or by backoff alone (`backoff`). `statuses` are retried by backoff
where an answer has no code that the client knows, such as one of a proxy.

The `x-retry` of an operation narrows this. `repeat: safe`: a repeat does no harm, so a broken
connection, a time-out and an answer that cannot be read are retried, too. `repeat: unsafe`: it may
do again what was done before, so only its `codes` are retried, a connection that was never made,
and `uncharged_codes` where the answer has no `X-RateLimit-Limit` header: such a request was refused
before your account was charged for it, and nothing was done.
"""
RETRIED_STATUSES: Final = (408, 429, 500, 502, 503, 504)
_REFUSED_FIRST: Final = ("request_timeout", "rate_limited")
"""Retried codes of requests of which nothing was done: they never got as far as the command."""
_UNCHARGED: Final = ("service_unavailable",)
"""The same, of requests that were not charged: a database that fails in the command has it, too."""


def retry_rules(codes: Sequence[str]) -> Json:
    """Return the rules of all operations."""
    return {
        "description": _WORDS,
        "codes": {code: _row(code) for code in codes},
        "statuses": list(RETRIED_STATUSES),
    }


def retry_rule(endpoint: Endpoint) -> Json:
    """Return the rule of one operation."""
    if endpoint.repeat == "unsafe":
        return {
            "repeat": "unsafe",
            "codes": list(_REFUSED_FIRST),
            "uncharged_codes": list(_UNCHARGED),
        }
    retried = [code for code, row in ERRORS.items() if row.after and code in endpoint.errors]
    return {"repeat": "safe", "codes": retried}


def _row(code: str) -> Json:
    after = ERRORS[code].after
    return {"retryable": after is not None} | ({"after": after} if after else {})
