"""What is hashed of each event is made where it is asked for, instead of by a call."""

from migrations.apply import LEDGERS, run

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Replace the two functions by ones that make the same."""
    run("0021_leaf_functions.sql", LEDGERS)
