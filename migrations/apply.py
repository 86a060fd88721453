"""Running a plain SQL file against the ledgers that it applies to.

What takes long on a large table goes into a revision of its own, by `run_concurrently` or
`run_in_batches`: its statements commit one by one, so that no lock is kept, and it can be run again
when it was interrupted.
"""

import itertools
import re
import time
from collections.abc import Sequence
from pathlib import Path

from alembic import op

ACCOUNTS = ("accounts",)
PARTNER_LEDGERS = ("live", "test")
QUALIFIER = re.compile(r"(?<=\bschema )ledger\b|\bledger(?=\.\w)")
LEDGERS = (*ACCOUNTS, *PARTNER_LEDGERS)

_COMMENT = re.compile(r"--.*")
_TOKEN = re.compile(r"--.*|'[^']*'|\$(\w*)\$(?s:.*?)\$\1\$|;")
"""A comment, a text, a body between dollars, and the end of a statement, which none of them has."""

SQL = Path(__file__).parent / "sql"
_HALF_MADE = """
select format('drop index concurrently %%I.%%I', n.nspname, c.relname)
from pg_index as i join pg_class as c on c.oid = i.indexrelid
join pg_namespace as n on n.oid = c.relnamespace
where not i.indisvalid and n.nspname = %(ledger)s and c.relname = any(%(names)s)
"""
_OLD_TRANSACTIONS = "set lock_timeout = '10min'"
"""For what waits until older transactions have ended, and keeps nobody waiting meanwhile."""


def run(name: str, ledgers: Sequence[str]) -> None:
    """Run `migrations/sql/<name>` once per ledger, in the revision's transaction.

    In the file, `ledger.` stands for the schema and `claim_ledger_of` for the ledger's role.
    """
    connection = op.get_bind().execution_options(no_parameters=True)
    for ledger in ledgers:
        for statement in statements(_text(name, ledger)):
            connection.exec_driver_sql(statement)


def run_concurrently(name: str, ledgers: Sequence[str]) -> None:
    """Run a file's statements without a transaction: `create index concurrently if not exists`.

    Indexes that an interrupted run has left half made are dropped first.
    """
    names = re.findall(r"\bconcurrently if not exists (\w+)", (SQL / name).read_text())
    with op.get_context().autocommit_block():
        connection = op.get_bind()
        limit = connection.exec_driver_sql("show lock_timeout").scalar()
        connection.exec_driver_sql(_OLD_TRANSACTIONS)
        for ledger in ledgers:
            half_made = connection.exec_driver_sql(_HALF_MADE, {"ledger": ledger, "names": names})
            for statement in (*half_made.scalars().all(), *statements(_text(name, ledger))):
                connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        connection.exec_driver_sql(f"set lock_timeout = '{limit}'")


def run_in_batches(name: str, ledgers: Sequence[str]) -> None:
    """Run a file's statement again and again, each time in a transaction of its own.

    It changes rows whose key is above `%(after)s`, a bounded number in the key's order, and selects
    the last key that it looked at, with which it goes on; null ends it. Keys are whole numbers
    above zero. Between two batches it rests for as long as the last one took.
    """
    with op.get_context().autocommit_block():
        for ledger in ledgers:
            statement, after = _text(name, ledger), 0
            while after is not None:
                began = time.monotonic()
                after = op.get_bind().exec_driver_sql(statement, {"after": after}).scalar()
                time.sleep(time.monotonic() - began)


def _text(name: str, ledger: str) -> str:
    text = (SQL / name).read_text()
    return QUALIFIER.sub(ledger, text).replace("claim_ledger_of", f"claim_ledger_{ledger}")


def statements(text: str) -> list[str]:
    """Return the statements of a file, which are sent one by one.

    Citus sends the whole of what it was sent to the other nodes, where it makes an index, and they
    take one statement.
    """
    ends = [match.end() for match in _TOKEN.finditer(text) if match[0] == ";"]
    parts = [text[start:end] for start, end in itertools.pairwise((0, *ends, len(text)))]
    return [part.strip() for part in parts if _COMMENT.sub("", part).strip()]
