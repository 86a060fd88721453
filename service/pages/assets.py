"""Style sheet, script and icons of the pages, under addresses that change with their content."""

import hashlib
from importlib.resources import files
from typing import Final

from litestar.handlers import HTTPRouteHandler

from service.http.static import static_route

_TYPES: Final = {
    "pages.css": "text/css",
    "pages.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_A_DAY: Final = "public, max-age=86400"


class _Assets:
    def __init__(self) -> None:
        folder = files("service.pages").joinpath("static")
        self._contents = {name: folder.joinpath(name).read_bytes() for name in _TYPES}

    def path(self, name: str) -> str:
        """Return the address of an asset; a browser may keep it for good."""
        version = hashlib.sha256(self._contents[name]).hexdigest()[:12]
        return f"/assets/{name}?v={version}"

    def handlers(self) -> list[HTTPRouteHandler]:
        """Return the routes of all assets."""
        icon = self._contents["icon.svg"]
        return [
            *(
                static_route(f"/assets/{name}", content, _TYPES[name], _FOR_GOOD)
                for name, content in self._contents.items()
            ),
            # Browsers ask for the second by themselves where a document names no icon.
            *(
                static_route(path, icon, _TYPES["icon.svg"], _A_DAY)
                for path in ("/favicon.svg", "/favicon.ico")
            ),
        ]


ASSETS: Final = _Assets()
