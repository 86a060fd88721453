"""Members of partners' teams, and API keys that expire in the future."""

from migrations.apply import ACCOUNTS, run

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table of members, and add the column for expiring API keys."""
    run("0006_console.sql", ACCOUNTS)
