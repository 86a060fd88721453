"""Sessions and sign-in links of before, which are not bound to their rows, end."""

from migrations.apply import ACCOUNTS, run

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Delete them."""
    run("0015_bound_sessions.sql", ACCOUNTS)
