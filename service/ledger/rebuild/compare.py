"""Comparing the rows of two copies of a read model's tables."""

import json
from secrets import token_bytes
from typing import Any, NamedTuple

from service.ledger.database import Connection, always
from service.ledger.read_model import ReadModel
from service.ledger.sql import queries

DIFFERENCES_LISTED_MAX = 20
"""Of each table. The rest is counted."""

_SQL = queries("service.ledger.rebuild")

# A sum of 64-bit hashes: equal rows have equal sums in any order, and reading a table once in its
# own order is several times faster than looking each row up. The seed is drawn for each comparison:
# rows whose sums agree cannot be found beforehand by trying.
_DIGEST = "select count(*), sum(hash_record_extended(t, $1)) from {} as t"
_DIFFERING = """
select to_json(l) as live, to_json(n) as replayed, count(*) over () as total
from {live} as l full join {new} as n using ({key})
where l is distinct from n
order by {key}
limit $1
"""


class Difference(NamedTuple):
    """A row that differs. `fault` is `missing`, `surplus` or `changed`, of the live row.

    `columns` are those whose values differ. The values are left out: they may be personal.
    """

    table: str
    key: str
    fault: str
    columns: tuple[str, ...] = ()


class Compared(NamedTuple):
    """The result of a comparison: rows replayed, how many differ, the first of those."""

    rows: int
    total: int
    differences: list[Difference]


async def compare(connection: Connection, model: ReadModel, live: str, new: str) -> Compared:
    """Compare a read model's tables in two schemas, as one snapshot of the caller's sees them."""
    rows, total, differences = 0, 0, list[Difference]()
    seed = int.from_bytes(token_bytes(8), signed=True)
    for table in model.tables:
        ours = always(await connection.fetchrow(_DIGEST.format(f"{live}.{table}"), seed))
        theirs = always(await connection.fetchrow(_DIGEST.format(f"{new}.{table}"), seed))
        rows += theirs["count"]
        if ours != theirs:
            count, listed = await _differing(connection, live, new, table)
            total += count
            differences += listed
    return Compared(rows, total, differences)


async def _differing(
    connection: Connection, live: str, new: str, table: str
) -> tuple[int, list[Difference]]:
    names = await connection.fetch(_SQL.table_key.on(live), f"{live}.{table}")
    key = [str(row["name"]) for row in names]
    quoted = ", ".join(f'"{name}"' for name in key)
    statement = _DIFFERING.format(live=f"{live}.{table}", new=f"{new}.{table}", key=quoted)
    found = await connection.fetch(statement, DIFFERENCES_LISTED_MAX)
    listed = [_difference(table, key, row["live"], row["replayed"]) for row in found]
    return found[0]["total"] if found else 0, listed


def _difference(table: str, key: list[str], live: str | None, replayed: str | None) -> Difference:
    ours: dict[str, Any] = json.loads(live or "{}")
    theirs: dict[str, Any] = json.loads(replayed or "{}")
    named = "/".join(str((ours or theirs)[name]) for name in key)
    if not ours or not theirs:
        return Difference(table, named, "surplus" if ours else "missing")
    columns = tuple(name for name, value in theirs.items() if ours[name] != value)
    return Difference(table, named, "changed", columns)
