"""The ledger's parts that record spans; they replace the plain ones if traces are on."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final

import structlog

from service.core.tracing import SpanRecord, open_spans, span, within
from service.ledger.batching import Batcher, CommandT, OutcomeT, Run
from service.ledger.database import Connection, Pool, Row
from service.ledger.sql import Sql, queries

COMMITS: Final = queries("service.ledger").write.name
"""The statement that locks, looks again, appends, projects and commits."""


def statement_span(sql: Sql, schema: str) -> AbstractContextManager[SpanRecord | None]:
    """Record a statement by its name; never its arguments."""
    return span(
        "commit" if sql.name == COMMITS else sql.name,
        db__system__name="postgresql",
        db__namespace=schema,
    )


class TracedPool(Pool):
    """Records each statement by its name, and each transaction with its commit."""

    async def fetch(self, sql: Sql, *args: object) -> list[Row]:
        """Return the rows of one statement."""
        with statement_span(sql, self.schema):
            return await super().fetch(sql, *args)

    async def fetchrow(self, sql: Sql, *args: object) -> Row | None:
        """Return the first row of one statement."""
        with statement_span(sql, self.schema):
            return await super().fetchrow(sql, *args)

    @asynccontextmanager
    async def transaction(self, deadline: float | None = None) -> AsyncGenerator[Connection, None]:
        """Lend a connection for one transaction."""
        with span("transaction", db__system__name="postgresql", db__namespace=self.schema) as whole:
            ends: SpanRecord | None = None
            async with super().transaction(deadline) as connection:
                yield connection
                ends = SpanRecord("commit")
            ends.end()
            if whole is not None:
                whole.parts.append(ends)


class TracedBatcher(Batcher[CommandT, OutcomeT]):
    """Records the work for a batch in the spans of each of its commands.

    With a name, that is a separate span of the command, from when it is submitted.
    """

    def __init__(
        self,
        run: Run[CommandT, OutcomeT],
        *,
        name: str = "",
        batch_max: int,
        concurrency: int,
        deadline: float,
    ) -> None:
        self._spans: dict[int, Sequence[SpanRecord]] = {}

        async def recorded(commands: Sequence[CommandT]) -> Sequence[OutcomeT | Exception]:
            # The task began in the context of one request, and works for others as well.
            structlog.contextvars.unbind_contextvars("trace_id", "span_id")
            spans = [one for command in commands for one in self._spans.get(id(command), ())]
            for one in spans:
                one.note(claim_ledger__commands=len(commands))
            with within(spans):
                return await run(commands)

        super().__init__(
            recorded, name=name, batch_max=batch_max, concurrency=concurrency, deadline=deadline
        )

    async def submit(self, command: CommandT) -> OutcomeT:
        """Run a command, in a batch or alone."""
        with span(self.name) if self.name else nullcontext():
            self._spans[id(command)] = open_spans()
            try:
                return await super().submit(command)
            finally:
                del self._spans[id(command)]
