"""PgBouncer in transaction mode, in front of a database of the tests."""

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest

from service.ledger.session import SESSION
from tests.databases import login_url
from tests.patience import PATIENCE_SECONDS, until
from tests.processes import free_port, started

LIMITS = {
    "lock_timeout": "90s",
    "statement_timeout": "100s",
    "idle_in_transaction_session_timeout": "10s",
    "client_connection_check_interval": "1s",
}
LEDGERS = ("accounts", "live", "test")
SETTINGS = Path(__file__).parents[1] / "deploy" / "pgbouncer.ini"
PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Logins(NamedTuple):
    """Login roles by ledger, each a member of that ledger's role, and their password."""

    roles: dict[str, str]
    password: str


@contextmanager
def logins(url: str) -> Iterator[Logins]:
    """Make a login role for each ledger, with the limits of requests as its defaults."""
    password, suffix = secrets.token_hex(8), secrets.token_hex(4)
    roles = {ledger: f"{ledger}_login_{suffix}" for ledger in LEDGERS}
    with psycopg.connect(url, autocommit=True) as owner:
        for ledger, role in roles.items():
            owner.execute(f"create role {role} login password '{password}'")
            owner.execute(f"grant claim_ledger_{ledger} to {role}")
            for name, value in {**LIMITS, **SESSION}.items():
                text = value if name == "search_path" else f"'{value}'"
                owner.execute(f"alter role {role} set {name} = {text}")
        yield Logins(roles, password)
        for role in roles.values():
            owner.execute(f"drop role {role}")


def deployed_logins(owner_url: str) -> Logins:
    """Return the logins that `migrate` has made, given their limits as an operator does."""
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(SETTINGS.with_name("logins.sql").read_bytes())
    password = urlsplit(login_url(owner_url, "live")).password
    assert password is not None
    return Logins({ledger: f"claim_ledger_{ledger}" for ledger in LEDGERS}, password)


@contextmanager
def pooler(
    url: str,
    made: Logins,
    folder: Path,
    servers: Mapping[str, str] | None = None,
    authority: Path | None = None,
    **own: int,
) -> Iterator[dict[str, str]]:
    """Yield the settings that lead each ledger through a pooler.

    `servers` has the addresses of ledgers that are not where the URL leads. `authority` is that of
    PostgreSQL's certificate; without it, PostgreSQL is on this machine. The pooler has the settings
    of `deploy/`, but for its `own`. `folder` can be read by nobody's user: PgBouncer refuses to run
    as root.
    """
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed (apt-get install pgbouncer)")
    parts = urlsplit(url)
    port = free_port()
    users = folder / "users.txt"
    users.write_text("".join(f'"{role}" "{made.password}"\n' for role in made.roles.values()))
    config = folder / "pgbouncer.ini"
    named = {
        ledger: "{} = host={} port={} dbname={}\n".format(
            ledger, *address.split(":"), parts.path[1:]
        )
        for ledger, address in (servers or {}).items()
    }
    reached: dict[str, object] = (
        {"server_tls_sslmode": "disable"}
        if authority is None
        else {"server_tls_ca_file": authority}
    )
    config.write_text(
        f"[databases]\n{''.join(named.values())}* = host={parts.hostname} port={parts.port}\n"
        f"[pgbouncer]\n{SETTINGS.read_text()}"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_file = {users}\n"
        + "".join(f"{name} = {value}\n" for name, value in (reached | own).items())
    )
    user = 65534 if os.geteuid() == 0 else None
    command = [PGBOUNCER, str(config)]
    with (
        (folder / "pgbouncer.log").open("wb") as log,
        started(command, stdout=log, stderr=log, user=user) as process,
    ):
        _wait_until_it_listens(port, process, folder / "pgbouncer.log")
        databases = {ledger: ledger if ledger in named else parts.path[1:] for ledger in made.roles}
        yield {"TRANSACTION_POOLER": "on"} | {
            f"{ledger.upper()}_DATABASE_URL": (
                f"postgresql://{role}:{made.password}@127.0.0.1:{port}/{databases[ledger]}"
            )
            for ledger, role in made.roles.items()
        }


def _wait_until_it_listens(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS).close()
            return True
        return False

    until(listens, log.read_text)
