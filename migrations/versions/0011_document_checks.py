"""Documents whose content is still to be checked, and those in which checks found something."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create a table for each."""
    run("0011_document_checks.sql", PARTNER_LEDGERS)
