"""Mails about events of accounts, too, and about stages to whom wants them."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Let mails refer to events, and keep those of accounts."""
    run("0029_notices.sql", PARTNER_LEDGERS)
    run("0029_notices_accounts.sql", ACCOUNTS)
