"""The database's schema, as plain SQL revisions applied in order by Alembic.

`migrate(url)` brings a database to the newest revision. Revisions are additive: what a running
release still uses is removed one release later.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config


def migrate(database_url: str) -> None:
    """Bring the database to the newest revision; safe to run from several places at once."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["database_url"] = database_url
    command.upgrade(config, "head")
