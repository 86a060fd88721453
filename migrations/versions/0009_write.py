"""The function that writes what commands have decided."""

from migrations.apply import LEDGERS, run

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create it in each ledger."""
    run("0009_write.sql", LEDGERS)
