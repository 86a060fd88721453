"""The documentation's pages beside the reference: files of a directory, served under `/docs/`.

`just site` builds the directory. Its pages have scripts: the generator's own files, and two lines
in each page that the policy names by their hashes. Nothing is loaded from another host.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from litestar import Router
from litestar.handlers import HTTPRouteHandler

from service.http.router import OneOffRouter
from service.http.static import PAGE_HEADERS, static_route

HOME: Final = "/docs/index.html"
ORIGIN: Final = b"https://site.invalid"
"""What the build writes for our public URL, which it does not know (deploy/site/zensical.toml)."""

_MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".xml": "application/xml",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_HAS_OUR_URL: Final = frozenset({".html", ".txt", ".xml", ".md"})
_INLINE_SCRIPT: Final = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
SEARCH_STYLE: Final = "NwSx/R2V/U4jnW0Tq5pQ53Y/rzPVJ4dqE7D6UTA/J1k="
"""SHA-256 of the style sheet that the generator's script gives its search box, in base64."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'{hashes}; "
    f"style-src 'self' 'sha256-{SEARCH_STYLE}'; img-src 'self' data:; "
    "connect-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)


def site_router(directory: Path | None, public_url: str) -> Router:
    """Return the router of the directory's files, each read when it is first asked for."""
    routes = [] if directory is None else list(_routes(directory, public_url.encode()))
    return OneOffRouter("/docs", route_handlers=routes)


def _routes(directory: Path, public_url: bytes) -> Iterator[HTTPRouteHandler]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    headers = _headers(files)
    for file in files:
        media_type = _MEDIA_TYPES.get(file.suffix)
        if media_type is not None:
            path = "/" + file.relative_to(directory).as_posix()
            yield static_route(
                path, partial(_content, file, public_url), media_type, headers=headers
            )


def _content(file: Path, public_url: bytes) -> bytes:
    content = file.read_bytes()
    return content.replace(ORIGIN, public_url) if file.suffix in _HAS_OUR_URL else content


def _headers(files: list[Path]) -> Mapping[str, str]:
    """Return the headers of all files: the policy allows the inline scripts that the pages have."""
    pages = (file.read_bytes() for file in files if file.suffix == ".html")
    scripts = {script for page in pages for script in _INLINE_SCRIPT.findall(page)}
    digests = sorted(base64.b64encode(hashlib.sha256(one).digest()).decode() for one in scripts)
    hashes = "".join(f" 'sha256-{digest}'" for digest in digests)
    return {**PAGE_HEADERS, "Content-Security-Policy": _POLICY.format(hashes=hashes)}
