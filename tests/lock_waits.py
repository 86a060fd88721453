"""Which of the service's connections wait for a lock."""

import psycopg

_WAITING = (
    "select count(*) from pg_stat_activity where application_name like %s"
    " and datname = current_database() and wait_event_type = 'Lock'"
)


def waiting_for_locks(owner: psycopg.Connection, name: str = "claim-ledger %") -> int:
    """Return how many connections of this name, a pattern of LIKE, wait for a lock."""
    owner.execute("select pg_stat_clear_snapshot()")  # a transaction keeps its first look
    row = owner.execute(_WAITING, [name]).fetchone()
    assert row is not None
    return row[0]
