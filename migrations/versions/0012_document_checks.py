"""Documents whose content is still to be checked, and those in which checks found something."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Create a table for each."""
    run("0012_document_checks.sql", PARTNER_LEDGERS)
