"""A ledger's login removes only what the service removes."""

from migrations.apply import ACCOUNTS, LEDGERS, PARTNER_LEDGERS, run

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Take back rights that no statement of the service needs."""
    run("0023_kept_rows.sql", LEDGERS)
    run("0023_kept_accounts.sql", ACCOUNTS)
    run("0023_kept_partner_ledgers.sql", PARTNER_LEDGERS)
