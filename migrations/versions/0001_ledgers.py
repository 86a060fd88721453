"""The three ledgers and their first read models."""

from migrations.apply import ACCOUNTS, LEDGERS, PARTNER_LEDGERS, run

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the schemas, their roles and their tables."""
    run("0001_ledger.sql", LEDGERS)
    run("0001_accounts.sql", ACCOUNTS)
    run("0001_partner_ledger.sql", PARTNER_LEDGERS)
