"""How many mails each mailbox was sent, and by whose doing."""

from migrations.apply import ACCOUNTS, PARTNER_LEDGERS, run

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table, and a column beside the addresses of sign-in links."""
    run("0011_mail_recipients.sql", PARTNER_LEDGERS)
    run("0011_sign_in_recipients.sql", ACCOUNTS)
