"""The database's schema, as plain SQL revisions applied in order by Alembic.

`migrate(url)` brings a database to the newest revision. Revisions are additive: what a running
release still uses is removed one release later.

Each revision is a transaction of its own and waits for a lock for a moment only: requests queue
behind whoever waits for an exclusive one. What was locked is tried again.
"""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config

CONNECT_SECONDS_MAX = 10
_UNTRUSTED = re.compile("certificate|SSL was required")
"""In libpq's words, whose ping tells no such server from one that is away."""
LOCKED_SECONDS_MAX = 60
"""How long a revision is tried again that finds a table locked."""
LOCKED_PAUSE_SECONDS = 0.5
"""Between two tries: requests that queued meanwhile are answered first."""
AWAY_PAUSE_SECONDS = 1
AWAY_TOLD_SECONDS = 30
"""How often a server that is waited for is looked for, and how often that is told."""
_HERE = Path(__file__).parent


class MigrationFailed(Exception):
    """A revision could not be applied; those before it were. `str()` is one line."""


class MigrationUnavailable(MigrationFailed):
    """PostgreSQL is away or refuses the login, or something stays locked: try again later."""


def migrate(database_url: str, ledger_urls: Mapping[str, str] | None = None) -> list[str]:
    """Bring the database to the newest revision, and make the logins of the ledgers' URLs.

    Return their names. Each revision all or nothing, as the owner; safe to run from several places
    at once, beside the release before, and again.

    Raises MigrationFailed when PostgreSQL denies a privilege, and MigrationUnavailable when it is
    away, refuses the login, or a table stays locked.
    """
    # Slow to import, and most commands have no use for them.
    import psycopg
    from sqlalchemy.exc import DBAPIError

    from migrations.logins import logins_of

    try:
        logins = logins_of(ledger_urls or {})
        config = configured(database_url)
        config.attributes["logins"] = logins
        upgrade(config)
    except DBAPIError as error:
        raise _failed(error.orig) from error
    except psycopg.Error as error:
        raise _failed(error) from error
    return sorted(logins)


def wait(database_url: str, seconds: int, tell: Callable[[str], object]) -> None:
    """Wait until a server accepts connections, for so many seconds at most; `tell` gets why not.

    A server that refuses the login, has no such database, or another certificate is there:
    `migrate` says the rest.
    """
    import psycopg
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    ends_at = time.monotonic() + seconds
    tells_at = 0.0
    while (left := ends_at - time.monotonic()) > 0:
        place = make_conninfo(database_url, connect_timeout=min(CONNECT_SECONDS_MAX, int(left) + 1))
        try:
            psycopg.connect(place).close()
        except psycopg.OperationalError as error:
            if _UNTRUSTED.search(str(error)):
                return
            silent = isinstance(error, psycopg.errors.ConnectionTimeout)
            if not silent and pq.PGconn.ping(place.encode()) == pq.Ping.OK:
                return
            if time.monotonic() >= tells_at:
                tell(str(_failed(error)))
                tells_at = time.monotonic() + AWAY_TOLD_SECONDS
            time.sleep(AWAY_PAUSE_SECONDS)
        else:
            return


def configured(database_url: str) -> "Config":
    """Return Alembic's configuration for a database, which makes no logins."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_HERE).replace("%", "%%"))
    config.attributes["database_url"] = database_url
    config.attributes["logins"] = {}
    return config


def upgrade(config: "Config") -> None:
    """Apply the missing revisions; try again what finds a table locked.

    Raises DBAPIError or psycopg.Error.
    """
    import psycopg
    from alembic import command
    from sqlalchemy.exc import DBAPIError

    ends_at = time.monotonic() + LOCKED_SECONDS_MAX
    while True:
        try:
            command.upgrade(config, "head")
        except DBAPIError as error:
            is_locked = isinstance(
                error.orig, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected
            )
            if not is_locked or time.monotonic() > ends_at:
                raise
            time.sleep(LOCKED_PAUSE_SECONDS)
        else:
            return


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
        raise _failed(error) from error
    return rows == [(newest_revision(),)]


def newest_revision() -> str:
    """Return the newest revision, with which the name of its file in `versions/` begins."""
    return max(path.name.partition("_")[0] for path in (_HERE / "versions").glob("*_*.py"))


def _failed(error: BaseException | None) -> MigrationFailed:
    """Return what an error of the driver's means, in one line."""
    import psycopg

    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    is_away = isinstance(error, psycopg.OperationalError)
    return (MigrationUnavailable if is_away else MigrationFailed)(line)
