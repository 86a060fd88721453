"""A stream whose first event was set aside can begin again."""

from migrations.apply import ACCOUNTS, LEDGERS, PARTNER_LEDGERS, run

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    """Replace two functions; what was set aside before keeps its rows until a rebuild."""
    run("0038_dropped_rows_accounts.sql", ACCOUNTS)
    run("0038_dropped_rows_partner_ledgers.sql", PARTNER_LEDGERS)
    run("0038_begun_again.sql", LEDGERS)
