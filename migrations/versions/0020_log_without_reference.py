"""Numbering an event looks up its row once less, and locks nothing of it."""

from migrations.apply import LEDGERS, run

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Drop the log's reference to events; who sets aside holds the head instead."""
    run("0020_log_without_reference.sql", LEDGERS)
