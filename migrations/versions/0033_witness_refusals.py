"""Witnesses that find the log inconsistent with what they signed of it: an alarm for people."""

from migrations.apply import LEDGERS, run

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Add the table, which the worker writes when a witness refuses, and clears when it signs."""
    run("0033_witness_refusals.sql", LEDGERS)
