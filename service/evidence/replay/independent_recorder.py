"""The stock recorder of the `eventsourcing` library on a ledger, in sessions that cannot write."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from eventsourcing.persistence import Notification, PersistenceError
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from service.ledger.database import LedgerUnavailable
from service.ledger.decoding import PAGE_BYTES_MAX
from service.ledger.session import SESSION

VIEW = "stored_events"
CONNECT_SECONDS_MAX = 5.0


_PAGE = """
select count(*) as events
from (
    select sum(octet_length(state)) over w as bytes_before
    from (
        select notification_id, state from {}.{}
        where notification_id >= %s
        order by notification_id
        limit %s
    ) as page
    window w as (order by notification_id rows between unbounded preceding and 1 preceding)
) as measured
where coalesce(bytes_before, 0) < %s
"""


class BoundedRecorder(PostgresApplicationRecorder):
    """The stock recorder, whose pages end once they have PAGE_BYTES_MAX: it limits events only."""

    def select_notifications(  # noqa: D102 - the library's
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        first = 0 if start is None else start if inclusive_of_start else start + 1
        statement = SQL(_PAGE).format(Identifier(self.datastore.schema), Identifier(VIEW))
        with self.datastore.get_connection() as connection:
            row = connection.execute(statement, (first, limit, PAGE_BYTES_MAX)).fetchone()
        return super().select_notifications(
            start,
            max(1, row["events"] if row else 0),
            stop,
            topics,
            inclusive_of_start=inclusive_of_start,
        )


@contextmanager
def stock_recorder(
    url: str, schema: str, connections: int = 1
) -> Generator[PostgresApplicationRecorder, None, None]:
    """Yield a recorder that reads the ledger of a schema. It blocks: use it in a thread.

    It never creates a table, and its sessions are read-only by a startup option, which a
    transaction pooler may not pass on: it needs a direct connection. A subscription needs two
    `connections`: it listens on one and reads on the other. Raises LedgerUnavailable.
    """
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
    fixed = {**SESSION, "default_transaction_read_only": "on"}
    options = " ".join(
        "-c {}={}".format(name, value.replace(" ", r"\ ")) for name, value in fixed.items()
    )
    kwargs |= {**given, "options": f"{given.get('options') or ''} {options}".strip()}
    try:
        with datastore:
            yield BoundedRecorder(datastore, events_table_name=VIEW)
    except PersistenceError as error:
        raise LedgerUnavailable(str(error)) from error
