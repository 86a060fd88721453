"""What a login writes for other processes to read is no larger than what the service writes."""

from migrations.apply import ACCOUNTS, LEDGERS, run

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    """Refuse larger rows from now on; those that are there stay."""
    run("0042_bounded_rows.sql", LEDGERS)
    run("0042_bounded_keys.sql", ACCOUNTS)
