"""A process that has imported the commands and forks for each, half a second faster.

A fork begins where the installed program is after its imports, and ends as that ends. Variables
that matter to Python's own start, such as PYTHON…, are for the installed program.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import service.cli
from tests.patience import PATIENCE_SECONDS
from tests.processes import die_with_parent

ORDER_BYTES_MAX = 1 << 20
ROOT = Path(__file__).parents[1]


def run_prepared(
    arguments: Sequence[str | bytes | Path], env: Mapping[str, str], cwd: Path | None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; kill it if it outlasts the time limit."""
    order: dict[str, Any] = {
        "arguments": [os.fsdecode(one) for one in arguments],
        "env": dict(env),
        "cwd": str(cwd or Path.cwd()),
    }
    with TemporaryFile() as output, TemporaryFile() as said:
        code = prepared().obey(order, [output.fileno(), said.fileno()])
        texts: list[str] = []
        for file in (output, said):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(order["arguments"], code, *texts)


class Prepared:
    """The prepared process, which ends with this one."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.prepared", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
            )

    def obey(self, order: Mapping[str, Any], files: Sequence[int]) -> int:
        """Run a command in a fork that prints to these two files; return its exit code.

        Commands of several threads run beside each other.
        """
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb") as answer:
            with os.fdopen(writing, "wb") as asked:
                text = json.dumps(order).encode()
                socket.send_fds(self._orders, [text], [*files, asked.fileno()])
            code = answer.read()
        assert code, f"the prepared process ended: {self._process.poll()}"
        return int(code)


_making = threading.Lock()


def prepared() -> Prepared:
    """Return the prepared process of this test process, also to threads that ask at once."""
    with _making:
        return _prepared()


@cache
def _prepared() -> Prepared:
    return Prepared()


def _fork_for_each(orders: socket.socket) -> None:
    """Fork for each request until the other end closes; a fork returns to run the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that wait for a command end unseen
    while True:
        text, files, _, _ = socket.recv_fds(orders, ORDER_BYTES_MAX, 3)
        if not text:
            sys.exit()
        if os.fork() == 0:
            die_with_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            orders.close()
            *printed, answer = files
            pid = os.fork()
            if pid == 0:
                die_with_parent()
                os.close(answer)
                _become(json.loads(text), printed)
                return
            for file in printed:
                os.close(file)
            _, status = os.waitpid(pid, 0)
            os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        for file in files:
            os.close(file)


def _become(order: Mapping[str, Any], files: Sequence[int]) -> None:
    signal.alarm(int(PATIENCE_SECONDS))
    for number, file in enumerate(files, start=1):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.argv = ["claim-ledger", *order["arguments"]]


def _run() -> None:
    """Run the command, and end without taking the interpreter apart.

    That would touch, and so copy, every page that the forks share: five times what a command takes.
    """
    code: object = 0
    try:
        service.cli.main()
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what every exit does
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


if __name__ == "__main__":
    for _, name, _ in pkgutil.walk_packages(service.cli.__path__, "service.cli."):
        if not name.startswith("service.cli.dev."):  # slow to import, and no command of a team's
            importlib.import_module(name)
    importlib.import_module("service.app.bootstrap")
    gc.freeze()  # the collector would touch every page, too
    with socket.socket(fileno=int(sys.argv[1])) as mine:
        _fork_for_each(mine)
    _run()
