"""Taking the triggers off tables that nobody may change, as whoever alters a log does."""

import psycopg

_TRIGGERS = """
select tgname from pg_trigger where tgrelid = %s::regclass and not tgisinternal
"""


def take_off(owner: psycopg.Connection, *tables: str) -> None:
    """Switch off the triggers of tables, which their owner can."""
    for table in tables:
        owner.execute(f"alter table {table} disable trigger user".encode())


def put_back(owner: psycopg.Connection, *tables: str) -> None:
    """Switch the triggers on as migrations do: whatever a session says of itself."""
    for table in tables:
        for (name,) in owner.execute(_TRIGGERS, [table]).fetchall():
            owner.execute(f"alter table {table} enable always trigger {name}".encode())
