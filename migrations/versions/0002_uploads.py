"""Documents: the uploads for which a URL was issued."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table of uploads in the ledgers of both modes."""
    run("0002_uploads.sql", PARTNER_LEDGERS)
