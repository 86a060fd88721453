"""The stock recorder of the `eventsourcing` library on a ledger, in sessions that cannot write."""

from collections.abc import Generator
from contextlib import contextmanager

from eventsourcing.persistence import PersistenceError
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg.conninfo import conninfo_to_dict

from service.ledger.database import LedgerUnavailable

VIEW = "stored_events"
CONNECT_SECONDS_MAX = 5.0


@contextmanager
def stock_recorder(
    url: str, schema: str, role: str | None, connections: int = 1
) -> Generator[PostgresApplicationRecorder, None, None]:
    """Yield a recorder that reads the ledger of a schema. It blocks: use it in a thread.

    It never creates a table, and its sessions are read-only by a startup option, which a
    transaction pooler may not pass on: it needs a direct connection. A subscription needs two
    `connections`: it listens on one and reads on the other. Raises LedgerUnavailable.
    """
    options = ["-c default_transaction_read_only=on"]
    if role is not None:
        options.append(f"-c role={role}")
    given = conninfo_to_dict(url)
    datastore = PostgresDatastore(
        *(str(given.pop(name, "")) for name in ("dbname", "host", "port", "user", "password")),
        schema=schema,
        pool_size=connections,
        connect_timeout=CONNECT_SECONDS_MAX,
    )
    # The library takes five parts of a URL; the others, such as sslmode, go to its driver.
    kwargs = datastore.pool.kwargs
    assert isinstance(kwargs, dict)  # noqa: S101 - the datastore has just made it
    kwargs["application_name"] = "claim-ledger independent"
    kwargs |= {**given, "options": " ".join([str(given.get("options") or ""), *options]).strip()}
    try:
        with datastore:
            yield PostgresApplicationRecorder(datastore, events_table_name=VIEW)
    except PersistenceError as error:
        raise LedgerUnavailable(str(error)) from error
