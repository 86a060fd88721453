"""What partners are told of: a read model that follows the log."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Create its table; the worker fills them from the log's beginning."""
    run("0024_partner_events.sql", PARTNER_LEDGERS)
