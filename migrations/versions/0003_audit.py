"""Evidence and operation: leaf hashes, checkpoints, read models that are rebuilt."""

from migrations.apply import ACCOUNTS, LEDGERS, PARTNER_LEDGERS, run

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Hash what is in the logs, and create the tables of auditors and operators."""
    run("0003_audit.sql", LEDGERS)
    run("0003_privacy.sql", PARTNER_LEDGERS)
    run("0003_service_keys.sql", ACCOUNTS)
    run("0003_mail.sql", PARTNER_LEDGERS)
