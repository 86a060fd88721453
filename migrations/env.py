"""Alembic's entry point: one transaction, one migrator at a time, bounded waits."""

import psycopg
from alembic import context
from sqlalchemy import create_engine, pool

from migrations import CONNECT_SECONDS_MAX, is_newest
from migrations.logins import make_logins

MIGRATION_LOCK = 7_236_801_172_605_581
"""An arbitrary constant: the advisory lock that keeps two migrators from running at once."""

_SOMETHING_TO_COMMIT = "select pg_logical_emit_message(true, 'claim-ledger', 'before a migration')"


def upgrade() -> None:
    """Connect as the owner, apply the missing revisions, and make the logins."""
    url = context.config.attributes["database_url"]
    engine = create_engine(
        "postgresql+psycopg://",
        # The driver reads what SQLAlchemy cannot: several hosts, a socket in `?host=`.
        creator=lambda: psycopg.connect(url, connect_timeout=CONNECT_SECONDS_MAX),
        poolclass=pool.NullPool,
    )
    if not is_newest(url):
        # A commit that waits for a replica has its locks: it is waited for while there are none.
        with engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(_SOMETHING_TO_COMMIT)
    with engine.connect() as connection, connection.begin():
        connection.exec_driver_sql(f"select pg_advisory_xact_lock({MIGRATION_LOCK})")
        connection.exec_driver_sql("set local lock_timeout = '5s'")
        # A login's own limit is meant for requests: making an index takes longer.
        connection.exec_driver_sql("set local statement_timeout = 0")
        context.configure(connection=connection, version_table_schema="public")
        with context.begin_transaction():
            context.run_migrations()
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the creator has made it
        make_logins(driver, context.config.attributes["logins"])


upgrade()
