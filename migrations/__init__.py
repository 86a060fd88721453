"""The database's schema, as plain SQL revisions applied in order by Alembic.

`migrate(url)` brings a database to the newest revision. Revisions are additive: what a running
release still uses is removed one release later.
"""

from collections.abc import Mapping
from pathlib import Path

CONNECT_SECONDS_MAX = 10
_HERE = Path(__file__).parent


class MigrationFailed(Exception):
    """The database could not be migrated; nothing was changed. `str()` is one line."""


def migrate(database_url: str, ledger_urls: Mapping[str, str] | None = None) -> list[str]:
    """Bring the database to the newest revision, and make the logins of the ledgers' URLs.

    Return their names. All of it or nothing, as the owner; safe to run from several places at once.

    Raises MigrationFailed when PostgreSQL is away, refuses the login or denies a privilege.
    """
    # Slow to import, and most commands have no use for them.
    import psycopg
    from alembic import command
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError

    from migrations.logins import logins_of

    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.attributes["database_url"] = database_url
    try:
        logins = config.attributes["logins"] = logins_of(ledger_urls or {})
        command.upgrade(config, "head")
    except DBAPIError as error:
        raise MigrationFailed(_one_line(error.orig)) from error
    except psycopg.Error as error:
        raise MigrationFailed(_one_line(error)) from error
    return sorted(logins)


def is_newest(database_url: str) -> bool:
    """Return whether a database is at the newest revision, ten times faster than Alembic does.

    Raises MigrationFailed when the database cannot be queried.
    """
    import psycopg

    try:
        with psycopg.connect(database_url, connect_timeout=CONNECT_SECONDS_MAX) as connection:
            rows = connection.execute("select version_num from public.alembic_version").fetchall()
    except psycopg.errors.UndefinedTable:
        return False
    except psycopg.Error as error:
        raise MigrationFailed(_one_line(error)) from error
    return rows == [(newest_revision(),)]


def newest_revision() -> str:
    """Return the newest revision, with which the name of its file in `versions/` begins."""
    return max(path.name.partition("_")[0] for path in (_HERE / "versions").glob("*_*.py"))


def _one_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
