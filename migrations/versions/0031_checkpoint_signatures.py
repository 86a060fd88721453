"""What witnesses and time-stamping authorities have signed of checkpoints."""

from migrations.apply import LEDGERS, run

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Add the signatures of others beside the checkpoints."""
    run("0031_checkpoint_signatures.sql", LEDGERS)
