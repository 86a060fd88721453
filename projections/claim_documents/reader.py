"""The documents of claims, all of them, a page at a time."""

from collections.abc import AsyncIterator

from service.ledger.database import Reader, Row
from service.ledger.sql import queries

PAGE = 1000
FLAGGED_MAX = 20

_SQL = queries("projections.claim_documents")


class ClaimDocumentsReader(Reader):
    """Reads `claim_documents` of one ledger."""

    async def flagged(self) -> list[Row]:
        """Return what checks of documents found last, newest first."""
        return await self._reads.fetch(_SQL.flagged, FLAGGED_MAX)

    async def pages(self) -> AsyncIterator[list[Row]]:
        """Yield every linked document in the order of the paths, in pages of at most 1,000."""
        last = ""
        while rows := await self._reads.fetch(_SQL.after, last, PAGE):
            yield rows
            last = rows[-1]["storage_path"]
