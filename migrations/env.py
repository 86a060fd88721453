"""Alembic's entry point: a transaction for each revision, one migrator at a time, bounded waits."""

import time

import psycopg
from alembic import context
from sqlalchemy import Connection, create_engine, pool

from migrations import CONNECT_SECONDS_MAX, MigrationFailed, MigrationUnavailable, is_newest
from migrations.logins import make_logins
from migrations.sequences import advance_sequences

MIGRATION_LOCK = 7_236_801_172_605_581
"""An arbitrary constant: the advisory lock that keeps two migrators from running at once."""
OTHER_MIGRATOR_SECONDS_MAX = 3600
"""How long another migrator is waited for, which may be making an index."""

ENCODING = "UTF8"
"""Of the database: in SQL_ASCII the driver reads no text at all, and others lack characters."""

_LOCK_TIMEOUT = "200ms"
"""Requests queue behind whoever waits for an exclusive lock, and give up after 900 ms."""
_SOMETHING_TO_COMMIT = "select pg_logical_emit_message(true, 'claim-ledger', 'before a migration')"


def upgrade() -> None:
    """Connect as the owner, apply the missing revisions, and make the logins."""
    url = context.config.attributes["database_url"]
    engine = create_engine(
        "postgresql+psycopg://",
        # The driver reads what SQLAlchemy cannot: several hosts, a socket in `?host=`.
        creator=lambda: _connected(url),
        poolclass=pool.NullPool,
    )
    if not is_newest(url):
        # A commit that waits for a replica has its locks: it is waited for while there are none.
        with engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(_SOMETHING_TO_COMMIT)
    with engine.connect() as connection:
        _wait_for_others(connection)
        connection.exec_driver_sql(f"set lock_timeout = '{_LOCK_TIMEOUT}'")
        # A login's own limit is meant for requests: making an index takes longer.
        connection.exec_driver_sql("set statement_timeout = 0")
        # Citus takes triggers for unsafe, though a ledger's tables are not split (docs/scale.md).
        # Elsewhere the setting means nothing.
        connection.exec_driver_sql("set citus.enable_unsafe_triggers = on")
        connection.commit()
        context.configure(
            connection=connection, version_table_schema="public", transaction_per_migration=True
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()  # it has looked at the revision, if no more
        with connection.begin():
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)  # noqa: S101 - the creator has made it
            make_logins(driver, context.config.attributes["logins"])
            advance_sequences(driver)


def _connected(url: str) -> psycopg.Connection:
    """Connect; raises MigrationFailed where the database cannot hold every text."""
    connection = psycopg.connect(url, connect_timeout=CONNECT_SECONDS_MAX)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != ENCODING:
        connection.close()
        raise MigrationFailed(
            f"the database has the encoding {encoding} and needs {ENCODING}: create it anew, by "
            f"create database … encoding '{ENCODING}' template template0"
        )
    return connection


def _wait_for_others(connection: Connection) -> None:
    """Take the lock for as long as the connection lasts.

    Waiting is asking again: a statement that waited would hold a snapshot, for which
    `create index concurrently` waits in turn.
    """
    ends_at = time.monotonic() + OTHER_MIGRATOR_SECONDS_MAX
    while True:
        with connection.begin():
            taken = connection.exec_driver_sql(f"select pg_try_advisory_lock({MIGRATION_LOCK})")
            if taken.scalar():
                return
        if time.monotonic() > ends_at:
            raise MigrationUnavailable("another migrator has been running for an hour")
        time.sleep(0.1)


upgrade()
