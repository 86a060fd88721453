"""Event keys can be followed by others."""

from migrations.apply import ACCOUNTS, run

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Note from when on a key signs."""
    run("0022_event_key_rotation.sql", ACCOUNTS)
