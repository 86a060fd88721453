"""Databases of the tests: clones of one that is migrated once."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg.conninfo import make_conninfo


def clone(postgres_url: str, template: str) -> str:
    """Return the owner's URL of a new clone of the template, which goes with its server."""
    name = f"test_{uuid4().hex}"
    # Half the time of the default, through the WAL, for a template of this size.
    run(postgres_url, f"create database {name} template {template} strategy file_copy")
    return on(postgres_url, name)


@contextmanager
def cloned(postgres_url: str, template: str) -> Iterator[str]:
    """Yield the owner's URL of a clone of the template, dropped at the end."""
    url = clone(postgres_url, template)
    yield url
    run(postgres_url, f"drop database {url.rpartition('/')[2]} with (force)")


def on(url: str, database: str) -> str:
    """Return the URL of another database of the same server."""
    return url.rpartition("/")[0] + f"/{database}"


def run(url: str, statement: str) -> None:
    """Run one statement outside a transaction."""
    with psycopg.connect(make_conninfo(url), autocommit=True) as connection:
        connection.execute(statement)
