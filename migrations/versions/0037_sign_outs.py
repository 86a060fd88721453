"""When people last signed out everywhere, which ends the marks of their browsers."""

from migrations.apply import ACCOUNTS, run

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    """Create the table beside the sessions."""
    run("0037_sign_outs.sql", ACCOUNTS)
