"""Databases of the tests: clones of one that is migrated once.

The roles are the cluster's: its ledgers' logins have the owner's password in every database.
"""

import atexit
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo

from migrations import migrate
from service.facts.caller import LEDGERS
from tests.patience import until

OWNER = "://claim_ledger:"
TEMPLATE = "template_of_tests"


def migrated(owner_url: str) -> None:
    """Migrate a database, with the logins of its ledgers."""
    migrate(owner_url, {ledger: login_url(owner_url, ledger) for ledger in LEDGERS})


def migrated_with_template(owner_url: str) -> None:
    """Migrate a server's database, to which nobody is connected, and make the template of it."""
    migrated(owner_url)
    name = owner_url.rpartition("/")[2]
    run(owner_url, f"create database {TEMPLATE} template {name} strategy file_copy")


def login_url(owner_url: str, ledger: str) -> str:
    """Return the URL of a ledger's own login."""
    return owner_url.replace(OWNER, f"://claim_ledger_{ledger}:", 1)


def with_logins(values: Mapping[str, str]) -> dict[str, str]:
    """Return settings, by their names without the prefix, with those that the owner's URL implies.

    Settings that have no owner's URL, or the ledgers' own, are left as they are.
    """
    if "DATABASE_URL" not in values:
        return dict(values)
    implied = {
        f"{ledger.upper()}_DATABASE_URL": login_url(values["DATABASE_URL"], ledger)
        for ledger in LEDGERS
    }
    return implied | dict(values)


def clone(postgres_url: str, template: str) -> str:
    """Return the owner's URL of a new clone of the template, which goes with its server."""
    name = f"test_{uuid4().hex}"
    # Half the time of the default, through the WAL, for a template of this size.
    _run_as_kept(postgres_url, f"create database {name} template {template} strategy file_copy")
    return on(postgres_url, name)


@contextmanager
def cloned(postgres_url: str, template: str) -> Iterator[str]:
    """Yield the owner's URL of a clone of the template, dropped at the end."""
    url = clone(postgres_url, template)
    yield url
    until(lambda: _dropped(postgres_url, url.rpartition("/")[2]))


def _dropped(postgres_url: str, name: str) -> bool:
    """Drop a database; return False while a session of another role's has yet to end.

    The owner may end its own. A pooler that has just ended leaves some of the logins' behind for a
    moment.
    """
    try:
        _run_as_kept(postgres_url, f"drop database {name} with (force)")
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def on(url: str, database: str) -> str:
    """Return the URL of another database of the same server."""
    return url.rpartition("/")[0] + f"/{database}"


def run(url: str, statement: str) -> None:
    """Run one statement outside a transaction."""
    with psycopg.connect(make_conninfo(url), autocommit=True) as connection:
        connection.execute(statement)


def rows_of(url: str, tables: Iterable[str]) -> dict[str, list[str]]:
    """Return the rows of each table as text, sorted."""
    with psycopg.connect(make_conninfo(url)) as connection:
        return {
            table: sorted(map(str, connection.execute(f"select * from {table}").fetchall()))  # noqa: S608 - ours
            for table in tables
        }


def _run_as_kept(url: str, statement: str) -> None:
    """Run one statement on the connection that this process keeps: to connect takes as long."""
    if url not in _kept:
        _kept[url] = psycopg.connect(make_conninfo(url), autocommit=True)
        atexit.register(_kept[url].close)
    _kept[url].execute(statement)


_kept: dict[str, psycopg.Connection] = {}
"""By the URLs of the servers that databases are cloned on, which run as long as the process."""
