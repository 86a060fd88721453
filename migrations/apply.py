"""Running a plain SQL file against the ledgers that it applies to."""

import re
from collections.abc import Sequence
from pathlib import Path

from alembic import op

ACCOUNTS = ("accounts",)
PARTNER_LEDGERS = ("live", "test")
QUALIFIER = re.compile(r"(?<=\bschema )ledger\b|\bledger(?=\.\w)")
LEDGERS = (*ACCOUNTS, *PARTNER_LEDGERS)


def run(name: str, ledgers: Sequence[str]) -> None:
    """Run `migrations/sql/<name>` once per ledger.

    In the file, `ledger.` stands for the schema and `claim_ledger_of` for the ledger's role.
    """
    text = (Path(__file__).parent / "sql" / name).read_text()
    connection = op.get_bind().execution_options(no_parameters=True)
    for ledger in ledgers:
        connection.exec_driver_sql(
            QUALIFIER.sub(ledger, text).replace("claim_ledger_of", f"claim_ledger_{ledger}")
        )
