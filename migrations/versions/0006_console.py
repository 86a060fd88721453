"""Members of partners' teams, and keys that end at a moment ahead."""

from migrations.apply import ACCOUNTS, run

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table of members, and the column of API keys."""
    run("0006_console.sql", ACCOUNTS)
