"""Webhook endpoints, what is still to be delivered to them, and what was."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Create the tables."""
    run("0027_webhook_endpoints.sql", ACCOUNTS)
    run("0027_webhooks.sql", PARTNER_LEDGERS)
