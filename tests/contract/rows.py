"""Every row of a database, for tests of what must not be in any."""

import psycopg


def rows_as_text(database_url):
    """Return every row of every table, as text; bytes are in hexadecimal there."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            for (text,) in connection.execute(f"select t::text from {table} as t"):  # noqa: S608 - ours
                yield text
