"""Which mails were sent: recorded outside the database, so that a restore sends none twice."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from service.archive.port import Archive, ArchiveUnavailable
from service.core.clock import Clock, timestamp
from service.ledger.database import Pool, Row
from service.ledger.ledger import Ledger
from service.ledger.sql import queries
from service.mail.queueing import sent_id

SECONDS_MAX: Final = 3.0
"""For one read or write: an archive may be far slower than a mail's transaction may take."""

_OURS: Final = re.compile(r"[\w-]{1,120}(\.[\w-]{1,60})?", re.ASCII)

_SQL = queries("service.mail")


@dataclass(frozen=True, slots=True)
class SentMail:
    """Notes of sent mails, `mail/<sent_id>` in the archive; where none is set, there are none.

    `ledgers` are those whose outboxes `settle` goes through.
    """

    ledgers: Sequence[Ledger]
    archive: Archive | None
    clock: Clock
    seconds_max: float = field(default=SECONDS_MAX, kw_only=True)

    async def has(self, row: Row) -> bool:
        """Return whether a mail of an outbox was sent before; raises ArchiveUnavailable.

        Of an id that this service does not make, nothing was ever noted: no archive has its name.
        """
        name = sent_id(row)
        if self.archive is None or not _OURS.fullmatch(name):
            return False
        async with self._in_time():
            if await self.archive.get(_name(name)) is not None:
                return True
            if row["digest"] is None:
                return False
            # Earlier releases noted a notice by the place of its event alone. What was sent before
            # the event happened was about another one, which a restored log lacks.
            earlier = await self.archive.get(_name(row["message_id"]))
            return earlier is not None and _sent_at(earlier) >= row["noted_at"]

    async def note(self, row: Row, header: str) -> None:
        """Note that a mail was sent, under its Message-ID; raises ArchiveUnavailable."""
        if self.archive is not None:
            content = json.dumps({"at": timestamp(self.clock()), "message_id": header})
            async with self._in_time():
                await self.archive.put(_name(sent_id(row)), content.encode())

    async def settle(self) -> int:
        """Mark every waiting mail that was sent before as sent; return how many there were."""
        return sum([await self._settle(ledger.database.background) for ledger in self.ledgers])

    async def _settle(self, outbox: Pool) -> int:
        settled = 0
        for row in await outbox.fetch(_SQL.outbox_waiting):
            if await self.has(row):
                settled += len(await outbox.fetch(_SQL.outbox_sent, row["message_id"]))
        return settled

    @asynccontextmanager
    async def _in_time(self) -> AsyncGenerator[None, None]:
        try:
            async with asyncio.timeout(self.seconds_max):
                yield
        except TimeoutError as error:
            raise ArchiveUnavailable("it did not answer in time") from error


def _name(sent: str) -> str:
    return f"mail/{sent}"


def _sent_at(note: bytes) -> datetime:
    return datetime.fromisoformat(json.loads(note)["at"])
