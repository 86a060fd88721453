"""Starting PostgreSQL's programs so that they die with us, and finding those left behind."""

import os
import pwd
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT, CompletedProcess, Popen
from typing import IO, Final, NamedTuple

from service.cli.dev.postgres.faults import EmbeddedPostgresError
from service.core.parent import signal_with_parent

OWN_USER: Final = "claim-ledger-postgres"
"""Who runs the server where root starts it: a user of the system, made when it is first needed."""

_PROC: Final = Path("/proc")

# Nothing is inherited from our environment: PGOPTIONS, LC_ALL or TZ would change the cluster, and
# faults are recognised by their English text. A given TZ also saves initdb a search for it.
_ENVIRONMENT: Final = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


class ServerUser(NamedTuple):
    """The user and the one group of the server's processes."""

    uid: int
    gid: int
    name: str


def server_user(cluster: Path) -> ServerUser | None:
    """Choose the server's user; None means our own, which is not root.

    Root runs it as a user that owns nothing else, so that no other program of that user's can read
    or signal it. Whoever owns an existing cluster keeps it: one start under sudo locks nobody out.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (found := cluster.stat()).st_uid != 0:
        return ServerUser(found.st_uid, found.st_gid, _name(found.st_uid))
    return _known(OWN_USER) or _made(OWN_USER)


def _known(name: str) -> ServerUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return ServerUser(entry.pw_uid, entry.pw_gid, name)


def _made(name: str) -> ServerUser:
    program = shutil.which("useradd", path=f"{os.defpath}:/usr/sbin:/sbin")
    options = ("--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent")
    said = "there is no useradd"
    if program is not None:
        said = run([program, *options, "--shell", "/bin/false", name], None).stdout.strip()
    # Another start may have been faster.
    if user := _known(name):
        return user
    raise EmbeddedPostgresError(
        f"PostgreSQL does not run as root, and the user {name} cannot be made ({said}): make it, "
        "or start this as another user than root"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def spawn(
    command: Sequence[str | Path],
    user: ServerUser | None,
    *,
    output: int | IO[bytes],
    stdin: int,
    pass_fds: Sequence[int] = (),
) -> Popen[bytes]:
    """Start a program as `user`; the kernel sends it SIGINT when the calling thread ends (Linux).

    The kernel watches the thread, not the process: call this from the main thread. A new session
    keeps a terminal's Ctrl-C from the server, so that the service can finish its work first; the
    working directory is `/` because ours may be closed to `user`.

    Raises OSError when the program cannot be executed as that user.
    """
    return Popen(  # noqa: S603 - our own programs, without a shell
        command,
        stdin=stdin,
        stdout=output,
        stderr=STDOUT,
        cwd="/",
        env=_ENVIRONMENT,
        start_new_session=True,
        pass_fds=pass_fds,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
        # Changing the user clears the parent-death signal, and only this hook runs after that.
        preexec_fn=signal_with_parent(signal.SIGINT),  # noqa: PLW1509 - see above
    )


def run(
    command: Sequence[str | Path],
    user: ServerUser | None,
    *,
    stdin: str = "",
    pass_fds: Sequence[int] = (),
) -> CompletedProcess[str]:
    """Run a program to its end; stdout and stderr come back as one text. Raises as `spawn`."""
    with spawn(command, user, output=PIPE, stdin=PIPE, pass_fds=pass_fds) as process:
        try:
            output, _ = process.communicate(stdin.encode())
        except BaseException:  # Ctrl-C, which the child's own session keeps from it
            process.kill()
            raise
        return CompletedProcess(command, process.returncode, output.decode(errors="replace"))


def servers_tagged(tag: str) -> list[int]:
    """Return the pids of all postgres processes, orphans too, whose cluster_name is `tag`.

    PostgreSQL shows the name in each process title. (The working directory would identify them
    too, but in a container root may not read that of another user's process.) Empty without
    /proc.
    """
    return [
        int(entry.name)
        for entry in (_PROC.iterdir() if _PROC.is_dir() else ())
        if entry.name.isdecimal() and _program(entry.name) == "postgres"
        if tag in _read(entry / "cmdline")
    ]


def is_foreign(pid: int) -> bool:
    """Return whether the pid belongs to a zombie or to a program that is not postgres.

    PostgreSQL takes either for a running server: a zombie's pid is still there to be signalled,
    and in a container nobody may ever collect it. False without /proc.
    """
    program = _program(pid)
    zombie = not _read(_PROC / str(pid) / "cmdline")
    return program != "" and (program != "postgres" or zombie)


def _program(pid: int | str) -> str:
    return _read(_PROC / str(pid) / "comm").strip()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:  # the process ended while we looked
        return ""


def send(pids: Sequence[int], number: signal.Signals) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_until_gone(tag: str, seconds_max: float) -> bool:
    """Wait until every server with the tag has ended, or is a zombie; False if some are left."""
    deadline = time.monotonic() + seconds_max
    while servers_tagged(tag):  # a zombie has an empty cmdline and no longer matches
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def evict(cluster: Path, tag: str, *, seconds_max: float) -> None:
    """End the server that a killed parent left behind; the caller holds the lock.

    The parent-death signal has usually begun the same shutdown; asking twice is harmless. Only
    the postmaster is asked: SIGINT means other things to its children.
    """
    recorded = [int(pid) for pid in pid_file(cluster)[:1] if pid.isdecimal()]
    left = servers_tagged(tag)
    if left:
        postmaster = [pid for pid in recorded if pid in left]
        send(postmaster, signal.SIGINT)
        if not (postmaster and wait_until_gone(tag, seconds_max)):
            send(servers_tagged(tag), signal.SIGKILL)
            if not wait_until_gone(tag, seconds_max):
                raise EmbeddedPostgresError(f"{cluster} is held by pid {servers_tagged(tag)[0]}")
    # In a restarted container the recorded pid soon belongs to another program of the same user,
    # which PostgreSQL takes for a running server. It judges a postgres of unknown origin itself.
    if recorded and is_foreign(recorded[0]):
        (cluster / "postmaster.pid").unlink(missing_ok=True)


def pid_file(cluster: Path) -> list[str]:
    """Return the lines of postmaster.pid: the pid first, the state (`ready`) eighth, or none."""
    try:
        return [line.strip() for line in (cluster / "postmaster.pid").read_text().splitlines()]
    except FileNotFoundError:
        return []
