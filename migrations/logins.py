"""The ledgers' logins: roles that reach one ledger each, and that the service works under.

A role that may do more is for `migrate` alone: who gets hold of a running process cannot become it.
"""

from collections.abc import Mapping
from typing import LiteralString, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from migrations import CONNECT_SECONDS_MAX

Logins: TypeAlias = Mapping[str, str | None]
"""Passwords by the names of the logins; None where the server knows a login by other means."""


def logins_of(urls: Mapping[str, str]) -> Logins:
    """Return the logins that are made for these URLs by ledger.

    A login of another name is the operator's own.
    """
    found: dict[str, str | None] = {}
    for ledger, url in urls.items():
        given = conninfo_to_dict(url)
        if given.get("user") == f"claim_ledger_{ledger}":
            password = given.get("password")
            found[f"claim_ledger_{ledger}"] = None if password is None else str(password)
    return found


def make_logins(connection: psycopg.Connection, logins: Logins) -> None:
    """Let the ledgers' roles log in, in the caller's transaction; what is so already stays.

    They inherit nothing, and the passwords leave this process only as SCRAM verifiers, so that no
    log of the server's has one. Where somebody else administers a role that can log in, as some
    providers do, it is left as it is. Raises psycopg.Error.
    """
    for name, password in logins.items():
        if _is_made(connection, name, password):
            continue
        try:
            with connection.transaction():
                connection.execute(_alter(connection, name, password))
        except psycopg.errors.InsufficientPrivilege:
            if not _has(connection, name, "rolcanlogin"):
                raise


def _alter(connection: psycopg.Connection, name: str, password: str | None) -> sql.Composed:
    statement = sql.SQL("alter role {} login noinherit").format(sql.Identifier(name))
    if password is None:
        return statement
    verifier = connection.pgconn.encrypt_password(
        password.encode(), name.encode(), b"scram-sha-256"
    )
    return statement + sql.SQL(" password {}").format(verifier.decode())


def _is_made(connection: psycopg.Connection, name: str, password: str | None) -> bool:
    """Return whether nothing has to be written, for which a commit might wait for a replica."""
    if not _has(connection, name, "rolcanlogin and not rolinherit"):
        return False
    if password is None:
        return True
    seconds = CONNECT_SECONDS_MAX
    try:
        with psycopg.connect(
            connection.info.dsn, user=name, password=password, connect_timeout=seconds
        ) as other:
            return bool(other.pgconn.used_password)  # not where everybody is trusted
    except psycopg.OperationalError as error:
        # Its limit is looked at last. In another language of the server's it is written again.
        return "too many connections" in str(error)


def _has(connection: psycopg.Connection, name: str, condition: LiteralString) -> bool:
    query = sql.SQL("select {} from pg_roles where rolname = %s").format(sql.SQL(condition))
    return connection.execute(query, [name]).fetchone() == (True,)
