"""Projectors, and the writes by which they describe rows without knowing how they are made.

In the transaction of an append, and when following the log, a run of writes is one set-based
statement. A rebuild loads inserts by COPY instead.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Protocol

import msgspec

from service.ledger.events import Event, Recorded
from service.ledger.sql import Sql

Values = tuple[object, ...]
_Picker = Callable[[object, Values], Values]


class Table:
    """A table of a read model: its name, and the columns that an insert fills."""

    def __init__(self, name: str, columns: str, *, replaces: str = "") -> None:
        """`columns` is `<name> <type>, …`, two or more; the first and each `…_id` name a row.

        `replaces` are those of the primary key, where a new row takes an old one's place: that of
        an event that was set aside, and has happened again. All that differs has to be inserted.
        """
        named = [column.split() for column in columns.split(",")]
        self.name = name
        self.columns = tuple(column for column, _ in named)
        self.kinds = tuple(kind for _, kind in named)
        self._pickers: dict[tuple[str, ...], _Picker] = {}
        self.on_conflict = _replacing(self.columns, replaces) if replaces else ""
        arrays = ", ".join(f"${nr}::{kind}[]" for nr, kind in enumerate(self.kinds, 1))
        self.insert = Sql(
            f"insert {name}",
            f"Add rows to {name}.",
            f"insert into ledger.{name} ({', '.join(self.columns)})\n"
            f"select * from unnest({arrays}){self.on_conflict}",
        )
        self.id_places = tuple(
            nr for nr, column in enumerate(self.columns) if nr == 0 or column.endswith("_id")
        )

    def new(self, fact: msgspec.Struct, **values: object) -> "Insert":
        """Return a new row: `values` by column, and otherwise the fact's fields of those names."""
        given = tuple(values)
        pick = self._pickers.get(given)
        if pick is None:
            pick = self._pickers[given] = self._picker(given)
        return Insert(self, pick(fact, tuple(values.values())))

    def _picker(self, given: tuple[str, ...]) -> "_Picker":
        """Return what makes a row of a fact and the values for the given columns."""
        unknown = set(given).difference(self.columns)
        if unknown:
            raise TypeError(f"{self.name} has no such columns: {unknown}")
        taken = [name for name in self.columns if name not in given]
        fields, have = _fields(taken), [*taken, *given]
        ordered = itemgetter(*map(have.index, self.columns))
        return lambda fact, values: ordered(fields(fact) + values)


def _replacing(columns: Sequence[str], key: str) -> str:
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"\non conflict ({key}) do update set {changed}"


def _fields(names: Sequence[str]) -> Callable[[object], Values]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda fact: tuple(getattr(fact, name) for name in names)  # no bare value


class Insert(msgspec.Struct, frozen=True):
    """A new row: a value for each of the table's columns."""

    table: Table
    row: Values

    @property
    def statement(self) -> Sql:
        """The set-based statement that inserts many such rows."""
        return self.table.insert


class Update(msgspec.Struct, frozen=True):
    """A change of rows of one table by a set-based statement: a value for each of its arrays."""

    table: Table
    statement: Sql
    row: Values


Write = Insert | Update


class Projector(Protocol):
    """Turns events into rows of a read model. Inline and catch-up projections are the same code."""

    name: str
    version: int
    """Shown by `projections status` and `rebuild` beside that which made the rows: raise it when an
    event makes another row, so that it shows which ledgers are still to be rebuilt."""
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
