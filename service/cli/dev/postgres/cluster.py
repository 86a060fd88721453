"""Creating a cluster: initdb, the owner's role and database, then a rename into place."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from service.cli.dev.postgres.binaries import Binaries
from service.cli.dev.postgres.directory import seen_by
from service.cli.dev.postgres.faults import EmbeddedPostgresError, reason
from service.cli.dev.postgres.processes import run
from service.core.files import flush_folder

OWNER: Final = "claim_ledger"
"""The name of the database and of the role that owns it."""

_STAGING: Final = "cluster-new-"
_BUILTIN_LOCALE_SINCE: Final = 17


def ensure_cluster(data_dir: Path, binaries: Binaries, *, password: str, durable: bool) -> Path:
    """Return the cluster's directory, created on first use; the caller holds the lock.

    Raises EmbeddedPostgresError when the cluster is of another major version or cannot be made.
    """
    cluster = data_dir / "cluster"
    if cluster.exists():
        found = (cluster / "PG_VERSION").read_text().strip()
        if found != str(binaries.major):
            raise EmbeddedPostgresError(
                f"{data_dir} was made by PostgreSQL {found}, "
                f"but {binaries.bin_dir} is PostgreSQL {binaries.major}"
            )
        return cluster
    for leftover in data_dir.glob(f"{_STAGING}*"):  # left by a start that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(dir=data_dir, prefix=_STAGING))
    try:
        if user := binaries.user:
            os.chown(staging, user.uid, user.gid)
        _initialise(staging, binaries, durable=durable)
        _create_owner(staging, binaries, password=password, durable=durable)
        staging.rename(cluster)
    except BaseException:  # Ctrl-C must not leave half a cluster
        shutil.rmtree(staging, ignore_errors=True)
        raise
    if durable:
        flush_folder(data_dir)
    return cluster


def _initialise(folder: Path, binaries: Binaries, *, durable: bool) -> None:
    user = binaries.user
    # The superuser's password is random and not kept: nobody logs in as superuser. It is passed in
    # an unlinked file that belongs to the server's user, never on a command line.
    with tempfile.TemporaryFile() as secret, seen_by(user, folder) as (path, descriptors):
        secret.write(os.urandom(32).hex().encode())
        secret.flush()
        secret.seek(0)
        if user:
            os.fchown(secret.fileno(), user.uid, user.gid)
        command = [
            *(binaries.bin_dir / "initdb", "--pgdata", path, "--username", "postgres"),
            *("--auth", "scram-sha-256", "--pwfile", f"/dev/fd/{secret.fileno()}"),
            *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions"),
        ]
        if binaries.major >= _BUILTIN_LOCALE_SINCE:
            # Sorts the same on every machine; libc's C.UTF-8 changes with the C library.
            command += ["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"]
        if not durable:
            command.append("--no-sync")
        _checked(run(command, user, pass_fds=(*descriptors, secret.fileno())))


def _create_owner(folder: Path, binaries: Binaries, *, password: str, durable: bool) -> None:
    """Create role and database in single-user mode, which needs no network and no log-in.

    Not a superuser, as in production. CREATEROLE lets migrations make the service's roles, and
    grant them to itself (`GRANT role TO CURRENT_USER`: needed before SET ROLE on 15 and on 18
    alike); CREATEDB lets tests clone a template.
    """
    with seen_by(binaries.user, folder) as (path, descriptors):
        command = [binaries.bin_dir / "postgres", "--single", "-D", path]
        if not durable:
            command += ["-c", "fsync=off"]
        answer = run(
            [*command, "postgres"],
            binaries.user,
            # One statement a line: CREATE DATABASE may not share a transaction.
            stdin=f"CREATE ROLE {OWNER} LOGIN CREATEROLE CREATEDB PASSWORD '{password}'\n"
            f"CREATE DATABASE {OWNER} OWNER {OWNER}\n",
            pass_fds=descriptors,
        )
        _checked(answer)
        if "ERROR:" in answer.stdout:  # single-user mode exits with 0 all the same
            raise EmbeddedPostgresError(reason(answer.stdout))


def _checked(answer: CompletedProcess[str]) -> None:
    if answer.returncode != 0:
        arguments: Sequence[object] = answer.args
        name = Path(str(arguments[0])).name
        raise EmbeddedPostgresError(f"{name} failed: {reason(answer.stdout)}")
