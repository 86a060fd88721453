"""Certificates of the machines of a drill, and the files of `deploy/` that name them."""

import shutil
import ssl
import subprocess
from pathlib import Path

from tests.drills.machines import UNPRIVILEGED, Machine

DEPLOYED = Path(__file__).parents[2] / "deploy" / "high_availability"
_PLACE = "/etc/claim-ledger"
_AUTHORITY = "authority.crt"


def place(name: str, folder: Path) -> Path:
    """Return a copy of a deployed file, in what stands for /etc/claim-ledger."""
    copy = folder / name
    shutil.copy(DEPLOYED / name, copy)
    copy.write_text(copy.read_text().replace(_PLACE, str(folder)))
    shutil.chown(copy, UNPRIVILEGED, UNPRIVILEGED)
    return copy


def certify(home: Path, machine: Machine, name: str) -> None:
    """Make a machine's certificate, for its address and a name, and copy it there.

    The authority's is in `home`, too, for the machine of the API.
    """
    kept = home / "authority"
    command = [DEPLOYED / "certificates.sh", kept, machine.name, name, machine.address]
    subprocess.run(command, check=True)
    machine.etc.mkdir()
    shutil.copy(kept / _AUTHORITY, home)
    (home / _AUTHORITY).chmod(0o644)
    shutil.copy(kept / _AUTHORITY, machine.etc)
    for ending in ("crt", "key"):
        shutil.copy(kept / f"{machine.name}.{ending}", machine.etc / f"machine.{ending}")
    for path in (machine.etc, *machine.etc.iterdir()):
        shutil.chown(path, UNPRIVILEGED, UNPRIVILEGED)


def authority(home: Path) -> Path:
    """Return the file of the certificate by which clients verify all machines."""
    return home / _AUTHORITY


def verifying(home: Path) -> ssl.SSLContext:
    """Return what a client without a certificate verifies all machines by."""
    return ssl.create_default_context(cafile=authority(home))
