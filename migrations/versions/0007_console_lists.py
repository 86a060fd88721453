"""What the developer console lists of a partner, and when its sandbox began anew."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the indexes of partner-wide lists, and add what they and the sandbox need."""
    run("0007_console_lists.sql", PARTNER_LEDGERS)
    run("0007_sandbox.sql", ACCOUNTS)
