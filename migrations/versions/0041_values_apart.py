"""Rare values are found by index, where one value is all that ANALYZE has met."""

from migrations.apply import PARTNER_LEDGERS, run

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Set how many values columns are taken to have."""
    run("0041_values_apart.sql", PARTNER_LEDGERS)
