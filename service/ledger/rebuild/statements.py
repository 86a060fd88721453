"""What a read model's statements do, read from their text: which can be loaded by COPY instead."""

import re
from functools import cache
from typing import NamedTuple

from service.ledger.sql import Sql

_COMMENT = re.compile(r"--[^\n]*\n")
_PLAIN_INSERT = re.compile(
    r"insert into ledger\.(\w+) \(([\w\s,]+)\) "
    r"select \* from unnest\( ?(\$\d+::\w+\[\](?:, ?\$\d+::\w+\[\])*) ?\) ?;?",
    re.ASCII,
)
_TABLE = re.compile(r"^(?:insert into|update|delete from) ledger\.(\w+)", re.ASCII)


class Insert(NamedTuple):
    """A statement that does nothing but add its rows to a table, in the order of `columns`."""

    table: str
    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[int, ...]:
        """Where in a row the values stand by which another statement can mean it: ids."""
        return tuple(nr for nr, name in enumerate(self.columns) if nr == 0 or name.endswith("_id"))


@cache
def plain_insert(statement: Sql) -> Insert | None:
    """Return the insert that a statement is, None where it is another or does more.

    Its parameters have to come in their order, a column each: then a row of a Write is a row of
    the table.
    """
    found = _PLAIN_INSERT.fullmatch(_text(statement))
    if found is None:
        return None
    columns = tuple(name.strip() for name in found[2].split(","))
    numbers = [int(number) for number in re.findall(r"\$(\d+)", found[3])]
    return Insert(found[1], columns) if numbers == list(range(1, len(columns) + 1)) else None


@cache
def table_of(statement: Sql) -> str:
    """Return the one table that a statement writes to; raises ValueError where it is not plain."""
    found = _TABLE.match(_text(statement))
    if found is None:
        raise ValueError(f"{statement.name}.sql: expected insert, update or delete of one table")
    return found[1]


def _text(statement: Sql) -> str:
    return " ".join(_COMMENT.sub("", statement.on("ledger") + "\n").split())
