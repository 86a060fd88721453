"""Claims and links of a partner are found by stage, reference and user."""

from migrations.apply import PARTNER_LEDGERS, run_concurrently

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Make the indexes."""
    run_concurrently("0026_console_search.sql", PARTNER_LEDGERS)
