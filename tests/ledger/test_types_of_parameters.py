"""No statement takes a parameter for a small number by accident."""

import psycopg

from tests.statements import PACKAGES, is_of, prepared, statements_of

TEMPORARY = "service.evidence.replay"
"""Its statements are about tables that it makes itself."""
INTEGERS = {"smallint", "smallint[]", "integer", "integer[]"}
OF_INTEGERS = {
    # How many bytes an event has at most.
    "service.evidence taken_back": {2},
    "service.ledger part": {4},
    "service.ledger told": {3},
    # A level of a tree, which has 63 at most.
    "service.evidence.tree keep_nodes": {1},
    # The number of a key, one more than the last.
    "service.ledger event_keys_insert": {1},
    # The id of a process, of PostgreSQL's own type.
    "service.ledger is_at_work": {1},
    # Declared by a function: how many commands are written at once, and of which of them a row is.
    "service.ledger write": {1, 6, 8, 14, 16, 20},
    # How many calls are on a page.
    "service.request_log page_filtered": {4},
    # Versions of a read model, from its code.
    "service.ledger.rebuild note": {2, 4},
    # Attempts and failures, which are counted up to a limit.
    "service.mail outbox_hold": {2},
    "service.mail outbox_settle": {2, 4},
    "service.people mail_read": {2},
    "service.people mail_settle": {2, 4},
    "service.people mail_take": {1},
    "service.webhooks failed": {6, 7},
}
"""Those that are untold, and fit by far: nobody chooses one, and none counts events."""


def test_a_parameter_is_a_small_number_by_its_cast_alone(module_database_url):
    """PostgreSQL takes its type from the literal beside it: `$1 between 0 and position` is one.

    A larger number is then refused by the driver, however wide the column is.
    """
    found = {}
    with psycopg.connect(module_database_url, autocommit=True, prepare_threshold=None) as one:
        for package in set(PACKAGES) - {TEMPORARY}:
            for sql in statements_of(package):
                types = prepared(one, sql, "live" if is_of(one, sql, "live") else "accounts")
                if types is None:
                    continue
                one.execute("deallocate one")
                integers = {n for n, name in enumerate(types, 1) if name in INTEGERS}
                untold = {n for n in integers if not _is_cast(sql.text, n)}
                if untold:
                    found[sql.name] = untold
    assert found == OF_INTEGERS


def _is_cast(text: str, parameter: int) -> bool:
    return f"${parameter}::int" in text or f"${parameter}::smallint" in text
