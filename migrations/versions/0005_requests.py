"""The log of partners' calls, for the developer console."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the tables of requests and of key usage."""
    run("0005_requests.sql", PARTNER_LEDGERS)
    run("0005_key_uses.sql", ACCOUNTS)
