"""Ledgers with nodes of their own in a Citus cluster are written to again."""

from migrations.apply import LEDGERS, run

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    """Replace two functions, which do on shards what they do on tables."""
    run("0043_shards.sql", LEDGERS)
