"""Proofs of consistency over HTTP, for everybody: between published checkpoints."""

import re
from collections.abc import Callable
from typing import Final

import structlog
from litestar import Response, route
from litestar.exceptions import NotFoundException
from litestar.params import FromPath

from service.archive.port import ArchiveUnavailable
from service.core.errors import Refusal, busy
from service.evidence.checkpoints.log_tree import LedgerForked
from service.evidence.checkpoints.signing import Checkpoints
from service.evidence.export.export_writer import Signed
from service.evidence.export.format import EvidenceFault, encode
from service.evidence.lineages import Lineages, lineages_of
from service.evidence.note import NoteInvalid
from service.evidence.proofs.consistency import make_consistency
from service.evidence.replay.footing import binds
from service.evidence.tiles.serving import ANY_ORIGIN
from service.evidence.tree.nodes import NodesBehind
from service.facts.caller import LEDGERS
from service.http.bodies import AnyRequest
from service.http.client_address import network_of
from service.ledger.sql import queries

AT_ONCE: Final = 2
"""Proofs that a process makes at once, by connections that no partner's request waits for."""
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
_HEADERS: Final = {**ANY_ORIGIN, "Cache-Control": "public, max-age=300"}

_SQL = queries("service.evidence.proofs")

log = structlog.get_logger()


class ConsistencyProofs:
    """Proves to anybody that a ledger's published checkpoints are of one log."""

    def __init__(
        self, checkpoints: Callable[[str], Checkpoints], charge: Callable[[str], None]
    ) -> None:
        """`charge` counts a request of a network, and raises Refusal where it asked too often."""
        self._checkpoints = checkpoints
        self.charge = charge
        self._making = 0

    async def make(self, ledger: str, old: int, new: int) -> bytes | None:
        """Return the proof between two sizes, each of a published checkpoint that binds the log.

        None: there is none of that size. Raises Refusal (`service_unavailable`), also where the
        proof would read much of the log.
        """
        if self._making >= AT_ONCE:
            raise busy()
        self._making += 1
        try:
            return await self._make(self._checkpoints(ledger), old, new)
        except (ArchiveUnavailable, NodesBehind) as error:
            log.warning("consistency unavailable", error_type=type(error).__name__)
            raise Refusal("service_unavailable") from error
        except (EvidenceFault, LedgerForked, NoteInvalid) as error:
            log.error("consistency fails", ledger=ledger)  # noqa: TRY400 - no fault of code
            raise Refusal("service_unavailable") from error
        finally:
            self._making -= 1

    async def _make(self, checkpoints: Checkpoints, old: int, new: int) -> bytes | None:
        keys, ledger = checkpoints.keys, checkpoints.ledger
        async with ledger.database.background.connection() as connection:
            lineages = await lineages_of(connection, ledger.name, keys)
        sizes = (old, new)
        older, newer = [await self._published(checkpoints, lineages, size) for size in sizes]
        if older is None or newer is None or old > new:
            return None
        return encode(await make_consistency(ledger, older, newer, keys, made_max=0))

    async def _published(
        self, checkpoints: Checkpoints, lineages: Lineages, size: int
    ) -> Signed | None:
        """Return a published checkpoint of a size that binds the log.

        Under one of events that were lost since, the tree's nodes would look altered, and be
        forgotten.
        """
        for row in await checkpoints.ledger.database.background.fetch(_SQL.of_size, size):
            if not binds(lineages, row["origin"], size):
                continue
            found = await checkpoints.published.get(row["origin"], size)
            if found is not None:
                checkpoint, note = found
                return Signed(checkpoint, await checkpoints.full_note(note))
        return None


def consistency_route(proofs: ConsistencyProofs):  # noqa: ANN201 - the decorator's type is private
    """Return the route `/<ledger>/consistency?old=<size>&new=<size>`."""

    @route(
        "/{ledger:str}/consistency",
        http_method=["GET", "HEAD"],
        status_code=200,
        opt={"summary": "The proof that a log continues an older checkpoint."},
    )
    async def consistency(request: AnyRequest, ledger: FromPath[str]) -> Response[bytes]:
        given = request.query_params
        sizes = [given.getall(name, []) for name in ("old", "new")]
        found = [_SIZE.fullmatch(one[0]) for one in sizes if len(one) == 1]
        if ledger not in LEDGERS or len(given) != len(sizes) or len(found) != len(sizes):
            raise NotFoundException
        old, new = [int(one[0]) if one else -1 for one in found]
        if min(old, new) < 0:
            raise NotFoundException
        proofs.charge(network_of(request.scope))
        content = await proofs.make(ledger, old, new)
        if content is None:
            raise NotFoundException
        return Response(content, media_type="application/json", headers=_HEADERS)

    return consistency
