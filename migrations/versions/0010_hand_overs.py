"""The hand-overs to processing that are still to be made."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create their table."""
    run("0010_hand_overs.sql", PARTNER_LEDGERS)
