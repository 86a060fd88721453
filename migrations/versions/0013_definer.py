"""A function that runs as the owner is given nothing to run by those who call it."""

from migrations.apply import LEDGERS, run

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Replace it."""
    run("0013_definer.sql", LEDGERS)
