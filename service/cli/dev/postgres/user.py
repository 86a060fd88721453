"""Whom PostgreSQL runs as: it refuses to be root, so root lends it an unprivileged user."""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from service.cli.dev.postgres.faults import EmbeddedPostgresError


@dataclass(frozen=True, slots=True)
class ServerUser:
    """The user and the one group of the server's processes."""

    uid: int
    gid: int
    name: str


def server_user(cluster: Path) -> ServerUser | None:
    """Choose the server's user; None means our own, which is not root.

    Whoever owns an existing cluster keeps it, so that installing Debian's PostgreSQL later (which
    adds the user `postgres`) or one start under sudo does not lock anybody out of the data.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (found := cluster.stat()).st_uid != 0:
        return ServerUser(found.st_uid, found.st_gid, _name(found.st_uid))
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServerUser(entry.pw_uid, entry.pw_gid, name)
    raise EmbeddedPostgresError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
