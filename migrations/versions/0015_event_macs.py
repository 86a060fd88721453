"""Events are bound to the service that wrote them, and hashes of keys to their keys."""

from migrations.apply import ACCOUNTS, LEDGERS, run

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the MACs, their keys, and the only way out of the log for what has no number."""
    run("0015_event_macs.sql", LEDGERS)
    run("0015_event_keys.sql", ACCOUNTS)
    run("0015_api_keys.sql", ACCOUNTS)
