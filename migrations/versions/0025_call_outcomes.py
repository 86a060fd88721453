"""A call's row names the faults of a refusal, and what a replay met."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add what is kept of a call beyond its status."""
    run("0025_call_outcomes.sql", PARTNER_LEDGERS)
