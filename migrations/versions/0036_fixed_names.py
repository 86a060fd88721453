"""Names of rows stay, and subscribers only move on."""

from migrations.apply import ACCOUNTS, LEDGERS, run

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Take back rights that no statement of the service needs; refuse what no subscriber does."""
    run("0036_fixed_names.sql", LEDGERS)
    run("0036_service_key_names.sql", ACCOUNTS)
