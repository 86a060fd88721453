"""Reading the log for one read model: the events that concern it, decoded as far as it needs."""

from collections.abc import Iterable, Sequence
from typing import cast

from service.ledger.database import Connection, Row
from service.ledger.decoding import StoredRow, Unread
from service.ledger.events import Recorded
from service.ledger.ledger import Transaction
from service.ledger.read_model import ReadModel
from service.ledger.sql import queries

_SQL = queries("service.ledger.rebuild")


class Log:
    """One ledger's log, as one read model reads it."""

    def __init__(self, model: ReadModel) -> None:
        """Nothing is read yet."""
        self._model = model
        self._schema = model.ledger.name

    async def between(self, connection: Connection, after: int, up_to: int) -> list[Row]:
        """Return the events after one position and up to another."""
        return await connection.fetch(
            _SQL.log_range.on(self._schema), after, up_to, self._model.topics
        )

    async def unnumbered(self, connection: Connection) -> list[Row]:
        """Return the committed events that have no position yet."""
        return await connection.fetch(_SQL.unnumbered.on(self._schema), self._model.topics)

    async def decode(
        self, connection: Connection, rows: Sequence[Row], unread: list[Unread] | None
    ) -> list[Recorded]:
        """Decode them; data keys are fetched where they are needed.

        Where a key has been destroyed, personal fields are None, as in every replay. Into `unread`
        goes what cannot be read; without it, Unreadable is raised.
        """
        transaction = Transaction(self._model.ledger, connection)
        personal = self._model.projector.reads_personal
        stored = cast("Iterable[StoredRow]", rows)  # a row of asyncpg unpacks as one
        return await transaction.decode_numbered(stored, personal=personal, unread=unread)
