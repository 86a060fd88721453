"""The error of the embedded server, and PostgreSQL's own messages in one line."""

import errno
import re
from pathlib import Path
from typing import Final

from service.cli.dev.faults import DevFault

_LIBRARY: Final = re.compile(r"error while loading shared libraries: ([^:\s]+): (.+)")
_REASON: Final = re.compile(r"(?:FATAL|PANIC|ERROR|error): +(.+)")

_DEBIAN_PACKAGES: Final = {
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libldap-2.5.so.0": "libldap-2.5-0",
    "liblz4.so.1": "liblz4-1",
    "libnuma.so.1": "libnuma1",
    "libpam.so.0": "libpam0g",
    "libpq.so.5": "libpq5",
    "libreadline.so.8": "libreadline8",
    "libssl.so.3": "libssl3",
    "libsystemd.so.0": "libsystemd0",
    "liburing.so.2": "liburing2",
    "libxml2.so.2": "libxml2",
    "libz.so.1": "zlib1g",
    "libzstd.so.1": "libzstd1",
}
"""Shared object → Debian 12 package, for what PostgreSQL 15 to 18 may link against."""


class EmbeddedPostgresError(DevFault):
    """The embedded server cannot do what was asked; `str()` is one line for a person."""


def reason(output: str) -> str:
    """Return one line that says why a program failed, from its output or log.

    A missing library and a full disk come first: they hide behind a dozen other messages. Then
    the last FATAL, PANIC or error, then the last line of all.
    """
    if found := _LIBRARY.search(output):
        library, detail = found.groups()
        package = _DEBIAN_PACKAGES.get(library)
        remedy = f"; on Debian: apt-get install {package}" if package else ""
        return f"PostgreSQL cannot load the shared library {library} ({detail.strip()}){remedy}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    full = [line for line in lines if "No space left on device" in line]
    if full:
        return f"the disk is full: {_cause(full[-1])}"
    reasons = [found[1].strip() for line in lines if (found := _REASON.search(line))]
    return (reasons or lines or ["it printed nothing"])[-1]


def _cause(line: str) -> str:
    found = _REASON.search(line)
    return found[1] if found else line


def describe(error: OSError, data_dir: Path) -> str:
    """Return one line that says what the operating system refused in `data_dir`."""
    where = error.filename or data_dir
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"{data_dir}: the disk is full"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"{data_dir} is not writable: {error.strerror} ({where})"
        case errno.ENOTDIR | errno.EEXIST:
            return f"{data_dir} is not a directory"
        case _:
            return f"{data_dir} cannot be used: {error.strerror} ({where})"
