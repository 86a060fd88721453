"""Sequences that are behind their columns: what a logical replica is left with.

Logical replication copies rows and no sequences, up to PostgreSQL 18. Such a replica would draw
numbers that events have already, and, between those that exist, some that none has: later events
would then stand before earlier ones.
"""

import psycopg
from psycopg import sql

_IDENTITIES = """
select
    c.relnamespace::regnamespace::text, c.relname::text, a.attname::text,
    pg_get_serial_sequence(c.oid::regclass::text, a.attname)
from pg_class as c
inner join pg_attribute as a on a.attrelid = c.oid
where
    a.attidentity <> '' and c.relkind in ('r', 'p')
    and c.relnamespace in (
        select relnamespace from pg_class where relname = 'events' and relkind in ('r', 'p')
    )
"""
_ADVANCE = """
select setval({}, newest.number)
from (select max({}) as number from {}) as newest
where newest.number > (select last_value from {})
"""


def advance_sequences(connection: psycopg.Connection) -> None:
    """Set each identity's sequence of the ledgers to its column's newest number, if it is behind.

    Raises psycopg.Error.
    """
    for schema, table, column, sequence in connection.execute(_IDENTITIES).fetchall():
        name = sql.SQL(sequence)  # quoted by PostgreSQL
        connection.execute(
            sql.SQL(_ADVANCE).format(
                sql.Literal(sequence), sql.Identifier(column), sql.Identifier(schema, table), name
            )
        )
