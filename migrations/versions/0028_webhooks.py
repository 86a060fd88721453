"""Webhook endpoints, what is still to be delivered to them, and what was."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Create the tables."""
    run("0028_webhook_endpoints.sql", ACCOUNTS)
    run("0028_webhooks.sql", PARTNER_LEDGERS)
