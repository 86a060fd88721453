"""Sessions that are listed, and end when they are not used."""

from migrations.apply import ACCOUNTS, run

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add whose a session is, and when it was last used."""
    run("0014_session_use.sql", ACCOUNTS)
