"""Sessions and sign-in links of before, which are not bound to their rows, end."""

from migrations.apply import ACCOUNTS, run

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Delete them."""
    run("0016_bound_sessions.sql", ACCOUNTS)
