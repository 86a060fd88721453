"""`/v1/openapi.json` and `/docs`: made once when the application starts, open to anyone.

The page is HTML and one style sheet of ours: no script, nothing from another host.
"""

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec
from litestar import Response, Router, route

from service.web.body import AnyRequest
from service.web.guide import guide
from service.web.openapi import document
from service.web.page import render_page

STYLE_PATH: Final = "/docs/assets/reference.css"

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def reference_router(public_url: str, api_path: str, rate_limit_per_minute: int) -> Router:
    """Answer the router of the document, the page and its style sheet."""
    text = guide(rate_limit_per_minute)
    described = document(f"{public_url}{api_path}", text)
    style = files("service.web").joinpath("assets/reference.css").read_bytes()
    # The address changes with the content, so that a browser may keep it for good.
    version = hashlib.sha256(style).hexdigest()[:12]
    page = render_page(
        described, text, style=f"{STYLE_PATH}?v={version}", openapi=f"{api_path}/openapi.json"
    )
    return Router(
        "/",
        route_handlers=[
            _fixed(f"{api_path}/openapi.json", msgspec.json.encode(described), "application/json"),
            _fixed("/docs", page.encode(), "text/html"),
            _fixed(STYLE_PATH, style, "text/css", "public, max-age=31536000"),
        ],
    )


def _fixed(path: str, content: bytes, media_type: str, cache: str = "no-cache") -> Any:  # noqa: ANN401 - the decorator's type is private
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**PAGE_HEADERS, "Cache-Control": cache, "ETag": etag}

    @route(path, http_method=["GET", "HEAD"], status_code=200, opt={"summary": "Reference."})
    async def answer(request: AnyRequest) -> Response[bytes]:
        if request.headers.get("if-none-match") == etag:
            return Response(b"", status_code=304, media_type=media_type, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return answer
