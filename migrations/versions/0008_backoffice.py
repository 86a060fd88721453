"""The back office's look-ups."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create their indexes."""
    run("0008_backoffice.sql", PARTNER_LEDGERS)
