"""A ledger's login may read of which revision its schema is."""

from migrations.apply import LEDGERS, run

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Let whoever verifies a ledger tell whether its schema is this release's."""
    run("0030_readable_revision.sql", LEDGERS)
