"""How far the tiles of each log are written."""

from migrations.apply import LEDGERS, run

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add what is told of tiles to what is told of checkpoints."""
    run("0034_tiles_state.sql", LEDGERS)
