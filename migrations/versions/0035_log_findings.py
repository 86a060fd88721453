"""What passes through the log have found beside its hashes."""

from migrations.apply import LEDGERS, run

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Add what was found of actors, and of the kept nodes of the tree."""
    run("0035_log_findings.sql", LEDGERS)
