"""Rare values are found by index, and prepared transactions are among the open ones."""

from migrations.apply import LEDGERS, PARTNER_LEDGERS, run

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Set how many values columns are taken to have, and replace a function."""
    run("0041_values_apart.sql", PARTNER_LEDGERS)
    run("0041_open_transactions.sql", LEDGERS)
