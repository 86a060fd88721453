"""An event has no more bytes than the service ever writes."""

from migrations.apply import LEDGERS, run

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Refuse larger ones from now on; those that are there stay."""
    run("0017_bounded_events.sql", LEDGERS)
