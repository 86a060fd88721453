"""How far the log was verified, in slices, and what was found."""

from migrations.apply import LEDGERS, run

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Add the place of the verification that goes on all the time."""
    run("0027_log_verification.sql", LEDGERS)
