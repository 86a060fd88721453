"""What somebody else stores under a key does not keep that key's own line out."""

from migrations.apply import LEDGERS, run

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """Drop the primary key, whose place the index of revision 0039 takes."""
    run("0040_several_lines.sql", LEDGERS)
