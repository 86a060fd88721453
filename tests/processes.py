"""Processes that tests start end with their test, and with the test process.

Each has a process group of its own, so that its children end with it, and is sent a signal by the
kernel when the test process is gone (Linux).
"""

import ctypes
import os
import random
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from tests.patience import PATIENCE_SECONDS

_PR_SET_PDEATHSIG = 1
_SETPRIV = shutil.which("setpriv")
_PORTS = range(10_000, 32_000)
"""Below those that the kernel gives to connections that go out (ip_local_port_range)."""
_PORTS_TRIED_MAX = 1000


class Running(Protocol):
    """What a test has started: a `subprocess.Popen`, or what is used as one."""

    pid: int
    returncode: int | None

    def send_signal(self, number: int, /) -> None:
        """Send it a signal, unless it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        ...


_running: list[Running] = []


def bound(
    command: Sequence[str | Path], number: signal.Signals = signal.SIGTERM
) -> list[str | Path]:
    """Return a command whose process is signalled when the thread that started it ends.

    SIGTERM is for what has children to end; what might ignore it is sent SIGKILL.
    """
    if _SETPRIV is None:
        return list(command)
    return [_SETPRIV, "--pdeathsig", number.name.removeprefix("SIG"), "--", *command]


def start(
    command: Sequence[str | Path], *, bound_by: signal.Signals = signal.SIGTERM, **more: Any
) -> "subprocess.Popen[Any]":
    """Start a process that ends with the test at the latest; `more` is passed to Popen."""
    process = subprocess.Popen(bound(command, bound_by), start_new_session=True, **more)
    bind(process)
    return process


def bind(process: Running) -> None:
    """Have a process, which leads a group of its own, end with the test at the latest."""
    _running.append(process)


def end(process: Running, number: signal.Signals = signal.SIGTERM) -> int:
    """Signal a process, wait for it, kill the rest of its group; return its exit code."""
    if process.returncode is None:
        process.send_signal(number)
        try:
            process.wait(PATIENCE_SECONDS)
        finally:
            kill(process)
    else:
        kill(process)
    return process.wait()


def kill(process: Running) -> None:
    """Kill a process and its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process in _running:
        _running.remove(process)


@contextmanager
def started(command: Sequence[str | Path], **more: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Run a process until the block ends."""
    process = start(command, **more)
    try:
        yield process
    finally:
        end(process)


@contextmanager
def ended() -> Iterator[None]:
    """At the end of the block, kill processes started in it that still run."""
    before = list(_running)
    try:
        yield
    finally:
        for process in [one for one in _running if one not in before]:
            kill(process)


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Make a fork be killed, or sent another signal, when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def free_port() -> int:
    """Return a free loopback port, which no other test process is given while this one runs.

    Nor does the kernel give it to a connection that goes out before its server listens.
    """
    for port in random.sample(_PORTS, _PORTS_TRIED_MAX):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0claim-ledger-tests-port-{port}")  # in no file system
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            held.close()
        else:
            held.detach()  # open until this process ends
            return port
    raise OSError("no port is free")
