"""Content that is the same for everybody and does not change while the process runs."""

import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
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

FOR_GOOD: Final = "public, max-age=31536000, immutable"

ACCEPTED_CHARACTERS_MAX: Final = 1000
"""Of what a client says that it accepts; one that says more gets what all do."""
_GZIP_REFUSED: Final = re.compile(r"q=0(\.0*)?")
"""The weight by which a client refuses an encoding."""


def versioned(path: str, content: bytes) -> str:
    """Return an address of some content that changes with it; a browser may keep it for good."""
    return f"{path}?{_version(content)}"


def static_route(
    path: str,
    content: Callable[[], bytes],
    media_type: str,
    caching: str = "no-cache",
    headers: Mapping[str, str] = PAGE_HEADERS,
) -> Any:  # noqa: ANN401 - the decorator's type is private
    """Return the route of some content, with its ETag; gzipped for clients that accept it.

    `content` is made when it is first asked for, and kept: most processes serve little of it.
    `caching` is of its address without a version, or with that of another release: while this one
    is replaced, browsers ask processes of both for what the other's pages name.

    Pages are never compressed: the length of a compressed page leaks what it repeats of its
    secrets (BREACH). This content holds no secrets and nobody's input.
    """
    common = {**headers, "Cache-Control": caching, "Vary": "Accept-Encoding"}

    @cache
    def plain() -> tuple[bytes, Mapping[str, str]]:
        made = content()
        return made, {**common, "ETag": f'"{hashlib.sha256(made).hexdigest()[:32]}"'}

    @cache
    def version() -> bytes:
        return _version(plain()[0]).encode()

    @cache
    def gzipped() -> tuple[bytes, Mapping[str, str]]:
        made, headers = plain()
        etag = f'{headers["ETag"][:-1]}-gzip"'
        return gzip.compress(made, mtime=0), {**headers, "ETag": etag, "Content-Encoding": "gzip"}

    @route(path, http_method=["GET", "HEAD"], status_code=200, opt={"summary": "Reference."})
    async def serve(request: AnyRequest) -> Response[bytes]:
        gzips = accepts_gzip(request.headers.get("accept-encoding", ""))
        body, headers = gzipped() if gzips else plain()
        if request.scope["query_string"] == version():
            headers = {**headers, "Cache-Control": FOR_GOOD}
        if request.headers.get("if-none-match") == headers["ETag"]:
            unchanged = {name: text for name, text in headers.items() if name != "Content-Encoding"}
            return Response(b"", status_code=304, media_type=media_type, headers=unchanged)
        return Response(body, media_type=media_type, headers=headers)

    return serve


def _version(content: bytes) -> str:
    return f"v={hashlib.sha256(content).hexdigest()[:12]}"


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a client accepts gzip (RFC 9110, section 12.5.3)."""
    if len(accept_encoding) > ACCEPTED_CHARACTERS_MAX:
        return False
    for offer in accept_encoding.lower().split(","):
        name, *parameters = (part.strip() for part in offer.split(";"))
        if name == "gzip":
            return not any(_GZIP_REFUSED.fullmatch(parameter) for parameter in parameters)
    return False
