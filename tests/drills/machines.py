"""Machines of a drill: a network, process ids and mounts of their own, on one switch.

All of it is in the network namespace that `just drill` begins with, and ends with its processes.
"""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from tests.bench.processes import children
from tests.faults.clusters import folder_for_all
from tests.patience import until
from tests.processes import bound, end, start

HERE = "10.77.0.1"
"""Our own address on the switch: of clients, of the API and of its proxy."""
UNPRIVILEGED = "postgres"
"""Debian's user for PostgreSQL, under which servers run."""
NAMES = ("postgresql.internal", "redis.internal")
"""Of the proxy on each machine of the API, as deploy/high_availability/haproxy.cfg has them."""
_SWITCH = "switch"
_REAPING = "while :; do sleep 3600; done"
"""What runs first on a machine: a shell, which reaps the children of others, as init does."""


def lay_network() -> None:
    """Make the switch, in a namespace where there is nothing but a loopback device.

    On every machine, the proxy's names lead to the machine itself.
    """
    assert _links() == {"lo"}, "drills need a network namespace of their own: `just drill`"
    ours, before = (Path(f"/proc/{of}/ns/mnt").readlink() for of in ("self", os.getppid()))
    assert ours != before, "drills need a namespace of mounts of their own: `just drill`"
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", _SWITCH, "type", "bridge")
    _run("ip", "address", "add", f"{HERE}/24", "dev", _SWITCH)
    _run("ip", "link", "set", _SWITCH, "up")
    with NamedTemporaryFile("w", suffix=".hosts") as file:
        file.write(f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {' '.join(NAMES)}\n")
        file.flush()
        Path(file.name).chmod(0o644)
        _run("mount", "--bind", file.name, "/etc/hosts")


_ON: "list[Machine]" = []
"""Machines that were turned on, and are not off again."""


@contextmanager
def home_of_machines() -> Iterator[Path]:
    """Return a folder for the disks of machines; all are off before it is removed.

    They vanish: a kernel that tells a machine that is off already tries for two minutes.
    """
    with folder_for_all() as home:
        try:
            yield home
        finally:
            for machine in [*_ON]:
                machine.vanish()


class Machine:
    """A machine with an address, which keeps its disk: a directory."""

    def __init__(self, name: str, number: int, home: Path) -> None:
        """Choose its address by its number; `start` turns it on."""
        self.name = name
        self.address = f"10.77.0.{10 + number}"
        self.disk = home / name
        self.disk.mkdir()
        shutil.chown(self.disk, UNPRIVILEGED, UNPRIVILEGED)
        self.etc = self.disk / "etc"
        """What /etc/claim-ledger is on a machine of its own."""
        self._link = f"port{number}"
        self._first: subprocess.Popen[bytes] | None = None
        self._entered: list[subprocess.Popen[bytes]] = []
        """What brought programs in: outside, but in its network, and stopped with its program."""

    def start(self) -> None:
        """Turn it on, and plug it in."""
        self._first = start(
            [
                *("unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"),
                *("bash", "-c", _REAPING),
            ],
            bound_by=signal.SIGKILL,
        )
        _ON.append(self)
        until(self._is_on)
        # Another test's machine of this number loses it a moment after its last process.
        until(lambda: self._link not in _links())
        peer = ("peer", "name", "eth0", "netns", str(self._init))
        _run("ip", "link", "add", self._link, "type", "veth", *peer)
        _run("ip", "link", "set", self._link, "master", _SWITCH, "up")
        self._inside("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            self._inside("ip", "link", "set", device, "up")
        # Sockets of its own, or PostgreSQL would find those of the other machines.
        owned = f"uid={UNPRIVILEGED},gid={UNPRIVILEGED}"
        _run(
            *map(str, self._entering("--mount")),
            *("mount", "-t", "tmpfs", "-o", owned, "sockets", "/run/postgresql"),
        )

    def run(
        self, command: Sequence[str | Path], log: str, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Start a server on it, as a user without rights, logging to a file of its disk."""
        with (self.disk / log).open("ab") as file:
            return self._started(
                [
                    *("setpriv", "--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED),
                    *("--clear-groups", "--", *bound(command, signal.SIGKILL)),
                ],
                env={"PATH": os.defpath + ":/usr/sbin", "LC_ALL": "C.UTF-8", **environment},
                cwd=self.disk,
                stdout=file,
                stderr=file,
            )

    def run_ours(
        self, command: Sequence[str | Path], log: str, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        """Start a program of ours on it, as ourselves: others may be unable to read it."""
        with (self.disk / log).open("ab") as file:
            command = bound(command, signal.SIGKILL)
            return self._started(command, env=environment, stdout=file, stderr=file)

    def die(self) -> None:
        """End every process at once; its peers are told by its kernel."""
        if self._first is not None:
            end(self._first, signal.SIGKILL)
            self._first = None
            _ON.remove(self)
        for one in self._entered:
            end(one, signal.SIGKILL)
        self._entered.clear()
        until(lambda: self._link not in _links())

    def vanish(self) -> None:
        """End it as a loss of power does: nobody is told, so its network goes before it."""
        if self._link in _links():  # or it could not be turned on
            _run("ip", "link", "delete", self._link)
        self.die()

    def freeze(self) -> None:
        """Stop every process; its kernel still acknowledges what is sent."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)
        for one in self._entered:
            one.send_signal(signal.SIGCONT)

    def cut_off(self) -> None:
        """Pull its cable."""
        _run("ip", "link", "set", self._link, "down")

    def plug_in(self) -> None:
        """Plug it in again."""
        _run("ip", "link", "set", self._link, "up")

    @property
    def _init(self) -> int:
        assert self._first is not None, "not on"
        (child,) = children(self._first.pid)
        return child

    def _is_on(self) -> bool:
        """Return whether its first process runs, in namespaces of its own."""
        try:
            return Path(f"/proc/{self._init}/comm").read_text() == "bash\n"
        except (ValueError, FileNotFoundError):
            return False

    def _signal(self, number: signal.Signals) -> None:
        own = Path(f"/proc/{self._init}/ns/pid").readlink()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                if (process / "ns" / "pid").readlink() == own:
                    os.kill(int(process.name), number)

    def _started(self, command: Sequence[str | Path], **more: Any) -> "subprocess.Popen[bytes]":
        process = start([*self._entering("--net", "--pid", "--mount"), *command], **more)
        self._entered.append(process)
        return process

    def _entering(self, *namespaces: str) -> list[str | Path]:
        return ["nsenter", "--target", str(self._init), *namespaces, "--"]

    def _inside(self, *command: str) -> None:
        _run(*map(str, self._entering("--net")), *command)


def _links() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
