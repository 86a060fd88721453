"""Every statement of the service, by the folder whose `queries.sql` has it."""

import re
from pathlib import Path

import psycopg

from service.ledger.sql import Sql, queries

PACKAGES = sorted(
    ".".join(path.parts[:-1])
    for folder in ("service", "projections")
    for path in Path(folder).rglob("queries.sql")
)
OF_CITUS = "pg_dist_shard"
"""A table that only databases of Citus have."""
SAMPLES = {
    "bigint": "1",
    "boolean": "true",
    "bytea": r"'\x01'",
    '"char"': "'a'",
    "date": "current_date",
    "double precision": "1",
    "integer": "1",
    "interval": "'1 hour'",
    "name": "'live'",
    "real": "1",
    "smallint": "1",
    "text": "'on'",
    "text[]": "array['jit']",
    "timestamp with time zone": "now()",
    "uuid": "lpad('1', 32, '0')::uuid",
    "xid": "'3'",
}
"""A value of each type of a parameter, with which settings can be asked for, and set."""
_TABLE = re.compile(r"\bledger\.(\w+)(?!\w*\()")


def statements_of(package: str) -> list[Sql]:
    """Return a folder's statements, in its file's order."""
    text = Path(*package.split("."), "queries.sql").read_text()
    names = re.findall(r"^-- name: (\w+)$", text, re.MULTILINE)
    assert names
    return [queries(package)[name] for name in names]


def is_of(connection: psycopg.Connection, sql: Sql, schema: str) -> bool:
    """Return whether a ledger has all tables that a statement names."""
    rows = connection.execute(
        "select relname from pg_class where relnamespace = %s::regnamespace", [schema]
    ).fetchall()
    return set(_TABLE.findall(sql.text)) <= {name for (name,) in rows}


def prepared(connection: psycopg.Connection, sql: Sql, schema: str) -> list[str] | None:
    """Prepare a statement as `one`; return its parameters' types, None if it cannot be planned."""
    if (
        OF_CITUS in sql.text
        and not connection.execute(f"select to_regclass('{OF_CITUS}')").fetchone()[0]
    ):
        return None
    try:
        connection.execute(f"prepare one as {sql.on(schema)}".encode())
    except psycopg.errors.SyntaxError:  # `set`, `lock` and such
        return None
    row = connection.execute(
        "select parameter_types::text[] from pg_prepared_statements where name = 'one'"
    ).fetchone()
    assert row is not None
    return row[0]


def sample(of: str) -> str:
    """Return a value of a type, in SQL."""
    value = SAMPLES.get(of) or f"array[{SAMPLES[of.removesuffix('[]')]}]"
    return f"{value}::{of}"
