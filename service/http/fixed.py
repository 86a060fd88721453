"""Content that is the same for everybody and does not change while the process runs."""

import gzip
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from litestar import Response, route

from service.http.bodies import AnyRequest

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

NEVER: Final = re.compile(r"q=0(\.0*)?")
"""The weight that refuses an encoding."""


def fixed(path: str, content: bytes, media_type: str, cache: str = "no-cache") -> Any:  # noqa: ANN401 - the decorator's type is private
    """Return the route of fixed content, with an ETag of it; packed for whoever unpacks it.

    Pages are never packed: the length of a packed page tells what it repeats of its secrets
    (BREACH). Nothing here is a secret, and nobody's input is in it.
    """
    digest = hashlib.sha256(content).hexdigest()[:32]
    common = {**PAGE_HEADERS, "Cache-Control": cache, "Vary": "Accept-Encoding"}
    plain = {**common, "ETag": f'"{digest}"'}
    packed = {**common, "ETag": f'"{digest}-gzip"', "Content-Encoding": "gzip"}
    small = gzip.compress(content, mtime=0)

    @route(path, http_method=["GET", "HEAD"], status_code=200, opt={"summary": "Reference."})
    async def answer(request: AnyRequest) -> Response[bytes]:
        unpacks = takes_gzip(request.headers.get("accept-encoding", ""))
        body, headers = (small, packed) if unpacks else (content, plain)
        if request.headers.get("if-none-match") == headers["ETag"]:
            unchanged = {name: text for name, text in headers.items() if name != "Content-Encoding"}
            return Response(b"", status_code=304, media_type=media_type, headers=unchanged)
        return Response(body, media_type=media_type, headers=headers)

    return answer


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether a client says that it unpacks gzip (RFC 9110, section 12.5.3)."""
    for offer in accept_encoding.lower().split(","):
        name, *parameters = (part.strip() for part in offer.split(";"))
        if name == "gzip":
            return not any(NEVER.fullmatch(one) for one in parameters)
    return False
