"""People who sign in, and the service's team."""

from migrations.apply import ACCOUNTS, run

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables of people in the ledger of accounts."""
    run("0004_people.sql", ACCOUNTS)
