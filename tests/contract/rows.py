"""Every row of a database, for tests of what no row may contain."""

import psycopg


def rows_as_text(database_url):
    """Return every row of every table as text; bytes are shown in hexadecimal."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables "
            "where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            for (text,) in connection.execute(f"select t::text from {table} as t"):  # noqa: S608 - ours
                yield text
