"""The partners whose documents wait are found without reading all that wait."""

from migrations.apply import PARTNER_LEDGERS, run_concurrently

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Make the index."""
    run_concurrently("0019_document_turns_index.sql", PARTNER_LEDGERS)
