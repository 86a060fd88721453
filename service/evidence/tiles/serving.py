"""The logs' tiles over HTTP, for everybody: static objects that caches may keep without limit.

Each request reads one object of the place that the worker writes to. To read all of a large log,
clients use that place directly (docs/ledger-format.md).
"""

import hashlib
import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

import structlog
from litestar import Response, Router, route
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from service.archive.port import ArchiveUnavailable, ObjectTooLarge, OpenArchive
from service.core.errors import Refusal, busy
from service.evidence.tiles.names import CHECKPOINT, is_tile
from service.facts.caller import LEDGERS
from service.http.bodies import AnyRequest
from service.http.client_address import network_of
from service.http.rate_limit.windows import LocalWindows
from service.http.router import OneOffRouter
from service.http.static import FOR_GOOD

PATH: Final = "/log"
PER_MINUTE: Final = 600
"""Requests of a network that a process answers: all tiles of a log of 10,000,000 events in two and
a half hours. Each process counts for itself, as this protects the place that is read."""
NETWORKS_MAX: Final = 500
"""Counted at once, which takes 10 MB where all of them ask for all they may."""
AT_ONCE: Final = 8
"""Objects that a process reads at once. The largest are bundles of entries, of at most 100 kB."""
BYTES_MAX: Final = 1 << 20
"""The largest object that is served; somebody else must have written a larger one."""
_LINEAGE: Final = re.compile(r"lin_[0-9a-z]{26}", re.ASCII)
ANY_ORIGIN: Final = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""A program in a browser may verify the log, too: nothing here depends on who asks."""
_A_MOMENT: Final = "public, max-age=5"

log = structlog.get_logger()


class LogTiles:
    """Reads tiles for anybody: a few at once, and a limited number a minute for each network."""

    def __init__(self, place: OpenArchive, names: Collection[str]) -> None:
        """`names` are those of the keys that sign, with which origins begin."""
        self._place = place
        self._names = sorted(set(names))
        self._windows = LocalWindows(limit=PER_MINUTE, window_seconds=60.0, keys_max=NETWORKS_MAX)
        self._reading = 0

    def charge(self, network: str) -> None:
        """Count a request; raises Refusal (`rate_limited`)."""
        allowance = self._windows.take(network)
        if not allowance.admitted:
            raise Refusal("rate_limited", retry_after_seconds=allowance.retry_after_seconds)

    async def read(self, log_path: str) -> bytes | None:
        """Return an object by `<ledger>/<lineage>/<path>`; None: there is none.

        Raises Refusal (`service_unavailable`).
        """
        if self._reading >= AT_ONCE:
            raise busy()
        self._reading += 1
        try:
            for name in self._names:
                with suppress(ObjectTooLarge):
                    found = await self._place.get(f"{name}/{log_path}", BYTES_MAX)
                    if found is not None:
                        return found
        except ArchiveUnavailable as error:
            log.warning("tiles unavailable")
            raise Refusal("service_unavailable") from error
        finally:
            self._reading -= 1
        return None


def tiles_router(tiles: LogTiles | None, *beside: HTTPRouteHandler) -> Router:
    """Return the router of all logs, `beside` included; without `tiles` it has no route."""
    return OneOffRouter(PATH, route_handlers=[] if tiles is None else [_route(tiles), *beside])


def _route(tiles: LogTiles):  # noqa: ANN202 - the decorator's type is private
    @route(
        "/{ledger:str}/{lineage:str}/{path:path}",
        http_method=["GET", "HEAD"],
        status_code=200,
        opt={"summary": "The log as tiles."},
    )
    async def serve(
        request: AnyRequest, ledger: FromPath[str], lineage: FromPath[str], path: FromPath[str]
    ) -> Response[bytes]:
        wanted = path.removeprefix("/")
        is_tiles = is_tile(wanted)
        if ledger not in LEDGERS or not _LINEAGE.fullmatch(lineage):
            raise NotFoundException
        if not is_tiles and wanted != CHECKPOINT:
            raise NotFoundException
        tiles.charge(network_of(request.scope))
        content = await tiles.read(f"{ledger}/{lineage}/{wanted}")
        if content is None:
            raise NotFoundException
        return _response(request, content, is_tiles=is_tiles)

    return serve


def _response(request: AnyRequest, content: bytes, *, is_tiles: bool) -> Response[bytes]:
    headers = {
        **ANY_ORIGIN,
        "Cache-Control": FOR_GOOD if is_tiles else _A_MOMENT,
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    }
    media_type = "application/octet-stream" if is_tiles else "text/plain"
    is_known = request.headers.get("if-none-match") == headers["ETag"]
    status, body = (304, b"") if is_known else (200, content)
    return Response(body, status_code=status, media_type=media_type, headers=headers)
