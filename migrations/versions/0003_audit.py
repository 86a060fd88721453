"""Evidence and operations: leaf hashes, checkpoints, rebuilding of read models."""

from migrations.apply import ACCOUNTS, LEDGERS, PARTNER_LEDGERS, run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Hash the existing events, and create the tables that auditors and operators need."""
    run("0003_audit.sql", LEDGERS)
    run("0003_privacy.sql", PARTNER_LEDGERS)
    run("0003_service_keys.sql", ACCOUNTS)
    run("0003_mail.sql", PARTNER_LEDGERS)
