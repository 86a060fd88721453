"""What an earlier server left in its directory: a pid file, a postmaster, orphaned children."""

import signal
from pathlib import Path

from service.cli.dev.postgres.faults import EmbeddedPostgresError
from service.cli.dev.postgres.processes import is_foreign, send, servers_tagged, wait_until_gone


def evict(cluster: Path, tag: str, *, seconds_max: float) -> None:
    """End what a killed parent left behind; the caller holds the lock, so nobody owns it.

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
    # which PostgreSQL takes for a running server. A postgres of unknown origin it may judge.
    if recorded and is_foreign(recorded[0]):
        (cluster / "postmaster.pid").unlink(missing_ok=True)


def pid_file(cluster: Path) -> list[str]:
    """Return the lines of postmaster.pid: the pid first, the state (`ready`) eighth, or none."""
    try:
        return [line.strip() for line in (cluster / "postmaster.pid").read_text().splitlines()]
    except FileNotFoundError:
        return []
