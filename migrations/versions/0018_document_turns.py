"""Checks of documents say which partner they are for, so that partners take turns."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add the column; checks that are queued, and those of the release before, are of nobody."""
    run("0018_document_turns.sql", PARTNER_LEDGERS)
