"""Inner nodes of each log's tree, for proofs that do not read the log."""

from migrations.apply import LEDGERS, run

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add the table, which the worker fills."""
    run("0032_tree_nodes.sql", LEDGERS)
