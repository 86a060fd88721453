"""`/v1/openapi.json`, `/docs`, `/docs/postman.json`: rendered once, when first asked for; public.

The page is HTML, a style sheet and a script of ours: nothing from another host.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from litestar import Router

from service.http.router import OneOffRouter
from service.http.static import PAGE_HEADERS, static_route, versioned
from service.partner_api.docs.guide import guide
from service.partner_api.docs.openapi import document
from service.partner_api.docs.page import render_page
from service.partner_api.docs.postman import collection
from service.partner_api.endpoints import Endpoint

STYLE_PATH: Final = "/docs/assets/reference.css"
SCRIPT_PATH: Final = "/docs/assets/reference.js"
POSTMAN_PATH: Final = "/docs/postman.json"

HEADERS: Final = {
    **PAGE_HEADERS,
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
}


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
    here = files("service.partner_api.docs")
    style = here.joinpath("reference.css").read_bytes()
    script = here.joinpath("reference.js").read_bytes()

    @cache
    def described() -> tuple[str, dict[str, Any]]:
        text = guide(endpoints, rate_limit_per_minute)
        return text, document(endpoints, f"{public_url}{api_path}", text)

    def openapi() -> bytes:
        return msgspec.json.encode(described()[1])

    def postman() -> bytes:
        return msgspec.json.encode(collection(described()[1]))

    def page() -> bytes:
        text, api = described()
        style_url, script_url = versioned(STYLE_PATH, style), versioned(SCRIPT_PATH, script)
        openapi_url = f"{api_path}/openapi.json"
        return render_page(
            endpoints,
            api,
            text,
            style=style_url,
            script=script_url,
            openapi=openapi_url,
            postman=POSTMAN_PATH,
            site=site,
        ).encode()

    return OneOffRouter(
        "/",
        route_handlers=[
            static_route(f"{api_path}/openapi.json", openapi, "application/json"),
            static_route(POSTMAN_PATH, postman, "application/json"),
            static_route("/docs", page, "text/html", headers=HEADERS),
            static_route(STYLE_PATH, lambda: style, "text/css"),
            static_route(SCRIPT_PATH, lambda: script, "text/javascript"),
        ],
    )
