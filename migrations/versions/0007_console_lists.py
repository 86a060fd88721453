"""The developer console's lists for a partner, and the time of its last sandbox reset."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the indexes of partner-wide lists, and add the columns for them and the sandbox."""
    run("0007_console_lists.sql", PARTNER_LEDGERS)
    run("0007_sandbox.sql", ACCOUNTS)
