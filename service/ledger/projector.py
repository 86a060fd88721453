"""What a projector is, and the writes by which it describes rows without knowing how they are made.

In the transaction of an append, and when following the log, a run of writes is one set-based
statement. A rebuild loads inserts by COPY instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from service.ledger.events import Event, Recorded
from service.ledger.sql import Sql

Values = tuple[object, ...]


class Table:
    """A table of a read model: its name, and the columns that an insert fills."""

    def __init__(self, name: str, columns: str) -> None:
        """`columns` is `<name> <type>, …`; the first one, and each `…_id`, identifies a row."""
        named = [column.split() for column in columns.split(",")]
        self.name = name
        self.columns = tuple(column for column, _ in named)
        self.kinds = tuple(kind for _, kind in named)
        self.columns_set = frozenset(self.columns)
        arrays = ", ".join(f"${nr}::{kind}[]" for nr, kind in enumerate(self.kinds, 1))
        self.insert = Sql(
            f"insert {name}",
            f"Add rows to {name}.",
            f"insert into ledger.{name} ({', '.join(self.columns)})\n"
            f"select * from unnest({arrays})",
        )
        self.id_places = tuple(
            nr for nr, column in enumerate(self.columns) if nr == 0 or column.endswith("_id")
        )

    def new(self, fact: msgspec.Struct, **values: object) -> "Insert":
        """Return a new row: `values` by column, and otherwise the fact's fields of those names."""
        if not self.columns_set.issuperset(values):
            raise TypeError(f"{self.name} has no such columns: {set(values) - self.columns_set}")
        row = [values[name] if name in values else getattr(fact, name) for name in self.columns]
        return Insert(self, tuple(row))


class Insert(NamedTuple):
    """A new row: a value for each of the table's columns."""

    table: Table
    row: Values

    @property
    def statement(self) -> Sql:
        """The set-based statement that inserts many such rows."""
        return self.table.insert


class Update(NamedTuple):
    """A change of rows of one table by a set-based statement: a value for each of its arrays."""

    table: Table
    statement: Sql
    row: Values


Write = Insert | Update


class Projector(Protocol):
    """Turns events into rows of a read model. Inline and catch-up projections are the same code."""

    name: str
    version: int
    tables: Sequence[Table]
    """Every table of the read model; its statements name no other, as `ledger.<table>`."""
    topics: Sequence[type[Event]]
    """The events that may change a row."""
    reads_personal: bool = False
    """Whether rows depend on encrypted fields: only then are keys asked for."""

    def project(self, recorded: Recorded) -> Iterable[Write]:
        """Return what this event changes; nothing for an event that does not concern it."""
        ...


def runs(writes: Iterable[Write]) -> Iterator[tuple[Sql, list[Values]]]:
    """Yield consecutive writes of one statement together, with their rows in order."""
    statement: Sql | None = None
    rows: list[Values] = []
    for write in writes:
        if write.statement is not statement:
            if statement is not None:
                yield statement, rows
            statement, rows = write.statement, []
        rows.append(write.row)
    if statement is not None:
        yield statement, rows


def arrays(rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Return the rows as the array parameters of a set-based statement, a column each."""
    return [list(column) for column in zip(*rows, strict=True)]
