"""`/v1/openapi.json` and `/docs`: rendered once, when they are first asked for; public.

The page is HTML and one style sheet of ours: no script, nothing from another host.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from litestar import Router

from service.http.router import OneOffRouter
from service.http.static import static_route
from service.partner_api.docs.guide import guide
from service.partner_api.docs.openapi import document
from service.partner_api.docs.page import render_page
from service.partner_api.endpoints import Endpoint

STYLE_PATH: Final = "/docs/assets/reference.css"


def reference_router(
    endpoints: Sequence[Endpoint],
    public_url: str,
    api_path: str,
    rate_limit_per_minute: int,
    site: str | None,
) -> Router:
    """Return the router of the document, the page and its style sheet.

    `site` is the path of the documentation's first page, if there is one here.
    """
    style = files("service.partner_api.docs").joinpath("reference.css").read_bytes()
    # The address changes with the content, so browsers may cache it for ever.
    version = hashlib.sha256(style).hexdigest()[:12]

    @cache
    def described() -> tuple[str, dict[str, Any]]:
        text = guide(endpoints, rate_limit_per_minute)
        return text, document(endpoints, f"{public_url}{api_path}", text)

    def openapi() -> bytes:
        return msgspec.json.encode(described()[1])

    def page() -> bytes:
        text, api = described()
        style_url = f"{STYLE_PATH}?v={version}"
        openapi_url = f"{api_path}/openapi.json"
        return render_page(
            endpoints, api, text, style=style_url, openapi=openapi_url, site=site
        ).encode()

    return OneOffRouter(
        "/",
        route_handlers=[
            static_route(f"{api_path}/openapi.json", openapi, "application/json"),
            static_route("/docs", page, "text/html"),
            static_route(STYLE_PATH, lambda: style, "text/css", "public, max-age=31536000"),
        ],
    )
