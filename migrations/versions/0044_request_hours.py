"""A partner's calls are counted by the hour, too, whatever keys they are made with."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    """Add a table with the hours that the page of usage shows."""
    run("0044_request_hours.sql", PARTNER_LEDGERS)
