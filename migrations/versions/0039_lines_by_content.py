"""Several lines of a key can be of one checkpoint: what they are tells them apart."""

from migrations.apply import LEDGERS, run_concurrently

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Make the index, before the key goes that has one line of each."""
    run_concurrently("0039_lines_by_content.sql", LEDGERS)
