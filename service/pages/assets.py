"""Style sheet, script and icons of the pages, under addresses that change with their content."""

from functools import partial
from importlib.resources import files
from typing import Final

from litestar.handlers import HTTPRouteHandler

from service.http.static import static_route, versioned

_TYPES: Final = {
    "pages.css": "text/css",
    "pages.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "passkeys.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_A_DAY: Final = "public, max-age=86400"


_FOLDER: Final = files("service.pages").joinpath("static")
_CONTENTS: Final = {name: _FOLDER.joinpath(name).read_bytes() for name in _TYPES}


def asset_path(name: str) -> str:
    """Return the address of an asset; a browser may keep it for good."""
    return versioned(f"/assets/{name}", _CONTENTS[name])


def asset_routes() -> list[HTTPRouteHandler]:
    """Return the routes of all assets."""
    icon, icon_type = _CONTENTS["icon.svg"], _TYPES["icon.svg"]
    # Browsers ask for the second by themselves where a document names no icon.
    icons = ("/favicon.svg", "/favicon.ico")
    return [
        *(
            static_route(f"/assets/{name}", partial(_CONTENTS.__getitem__, name), _TYPES[name])
            for name in _CONTENTS
        ),
        *(static_route(path, lambda: icon, icon_type, _A_DAY) for path in icons),
    ]
