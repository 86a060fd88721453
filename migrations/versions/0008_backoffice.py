"""What the back office finds."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the indexes of its look-ups."""
    run("0008_backoffice.sql", PARTNER_LEDGERS)
