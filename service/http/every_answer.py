"""The headers that every answer has, refusals of all kinds included."""

from collections.abc import Mapping
from typing import Final

_A_YEAR_SECONDS: Final = 365 * 24 * 3600


def every_answer(public_url: str) -> Mapping[str, str]:
    """Return the headers; a response that has one of its own keeps that.

    What may be kept says so itself: the reference, its document, style sheets, scripts and icons,
    which are the same for everybody. Everything else is one caller's alone.
    """
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    if public_url.startswith("https:"):
        headers["Strict-Transport-Security"] = f"max-age={_A_YEAR_SECONDS}; includeSubDomains"
    return headers
