"""A process that has imported the commands and forks for each, a second of CPU cheaper.

A fork begins where the installed program is after its imports, and ends as that ends. Variables
that matter to Python's own start, such as PYTHON…, are for the installed program. What runs on
beside a test (`serve`, `worker`, `dev`) is forked with a session of its own.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import prometheus_client.values

import service.cli
from service.evidence.note import NoteKey
from tests.patience import PATIENCE_SECONDS
from tests.processes import bind, die_with_parent

ORDER_BYTES_MAX = 1 << 20
ROOT = Path(__file__).parents[1]
IMPORTED_FOR = {
    "serve": ("service.app.serve", "service.app.web", "uvloop"),
    "worker": ("service.app.worker",),
    "dev": (
        "service.cli.dev.command",
        "service.cli.dev.serving",
        "service.cli.dev.gcs.serving",
        "service.storage.google",
        "service.storage.signer",
        "google.oauth2.credentials",
        "alembic.command",
        "sqlalchemy.dialects.postgresql.psycopg",
    ),
}
"""What the first of these commands is imported for, and all later ones have."""


def run_prepared(
    arguments: Sequence[str | bytes | Path],
    env: Mapping[str, str],
    cwd: Path | None,
    stdin: IO[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; kill it if it outlasts the time limit.

    Its stdin is empty unless one is given.
    """
    order: dict[str, Any] = {
        "arguments": [os.fsdecode(one) for one in arguments],
        "env": dict(env),
        "cwd": str(cwd or Path.cwd()),
    }
    with TemporaryFile() as output, TemporaryFile() as said:
        files = [output, said] if stdin is None else [output, said, stdin]
        code = prepared().obey(order, [file.fileno() for file in files])
        texts: list[str] = []
        for file in (output, said):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(order["arguments"], code, *texts)


def start_prepared(
    arguments: Sequence[str | Path],
    env: Mapping[str, str],
    output: IO[bytes],
    said: IO[bytes],
    *,
    patient: bool = True,
) -> "PreparedProcess":
    """Start a command that runs on, in a session of its own; the test's end kills it.

    `patient`: requests have as long as tests wait, as in `world_on`; else the real deadlines.
    """
    order = {
        "arguments": [str(one) for one in arguments],
        "env": dict(env),
        "cwd": str(Path.cwd()),
        "runs_on": True,
        "patient": patient,
    }
    process = PreparedProcess(prepared().order(order, [output.fileno(), said.fileno()]))
    bind(process)
    return process


class PreparedProcess:
    """A command that runs on, used as a `subprocess.Popen` is."""

    def __init__(self, answer: BinaryIO) -> None:
        self.returncode: int | None = None
        self._answer = answer
        self.pid = int(answer.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self.returncode if self._ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raise TimeoutExpired if it takes longer than so many seconds."""
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired(f"prepared process {self.pid}", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send it SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send it SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float | None) -> bool:
        if self.returncode is None:
            looking = select.poll()
            looking.register(self._answer)
            if not looking.poll(None if seconds is None else seconds * 1000):
                return False
            self.returncode = int(self._answer.read())
            self._answer.close()
        return True


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
        """Run a command in a fork that prints to two files; return its exit code.

        It may read from a third one.
        Commands of several threads run beside each other.
        """
        with self.order(order, files) as answer:
            code = answer.read()
        assert code, f"the prepared process ended: {self._process.poll()}"
        return int(code)

    def order(self, order: Mapping[str, Any], files: Sequence[int]) -> BinaryIO:
        """Have a command run; return the pipe that its exit code comes from.

        The pid of one that runs on comes first, in a line.
        """
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as asked:
            text = json.dumps(order).encode()
            socket.send_fds(self._orders, [text], [*files, asked.fileno()])
        return os.fdopen(reading, "rb", buffering=0)


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
    running: dict[int, tuple[int, int]] = {}  # by the file of each: its pid, where its code goes
    looking = select.poll()
    looking.register(orders, select.POLLIN)
    while True:
        for ready, _ in looking.poll():
            if ready in running:
                looking.unregister(ready)
                _answer(ready, *running.pop(ready))
                continue
            text, files, _, _ = socket.recv_fds(orders, ORDER_BYTES_MAX, 4)
            if not text:
                sys.exit()
            order = json.loads(text)
            _import_for(order["arguments"])
            *given, answer = files
            pid = os.fork()
            if pid == 0:
                orders.close()
                for file, (_, other) in running.items():
                    os.close(file)
                    os.close(other)
                os.close(answer)
                _become(order, given)
                return
            for file in given:
                os.close(file)
            if "runs_on" in order:
                os.write(answer, f"{pid}\n".encode())
            ended = os.pidfd_open(pid)
            running[ended] = (pid, answer)
            looking.register(ended, select.POLLIN)


def _answer(ended: int, pid: int, answer: int) -> None:
    """Send the exit code of a command that has ended to who waits for it, if anybody does."""
    os.close(ended)
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):
        os.write(answer, str(os.waitstatus_to_exitcode(status)).encode())
    os.close(answer)


def _import_for(arguments: Sequence[str]) -> None:
    modules = IMPORTED_FOR.pop(arguments[0], ()) if arguments else ()
    for module in modules:
        importlib.import_module(module)
    if modules:
        assert threading.active_count() == 1  # no fork would have the others
        gc.freeze()  # the collector would touch every page, too


def _become(order: Mapping[str, Any], files: Sequence[int]) -> None:
    if "runs_on" in order:
        die_with_parent(signal.SIGTERM)  # it has children to end
        os.setsid()
    else:
        die_with_parent()
        signal.alarm(int(PATIENCE_SECONDS))
    for number, file in zip((1, 2, 0), files, strict=False):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    if order.get("patient"):
        _be_patient()
    sys.argv = ["claim-ledger", *order["arguments"]]


def _be_patient() -> None:
    """Let a busy machine answer late."""
    service = importlib.import_module("service.app.bootstrap").Service
    service.__init__.__kwdefaults__["deadline_seconds"] = PATIENCE_SECONDS
    serve = importlib.import_module("service.app.serve")
    serve.STOP_SECONDS_MAX = int(PATIENCE_SECONDS)
    if "CLAIM_LEDGER_REDIS_URL" in os.environ:
        redis = importlib.import_module("service.http.rate_limit.redis")
        redis.TIMEOUT_SECONDS = PATIENCE_SECONDS


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
    threading._shutdown()  # noqa: SLF001 - as the line below
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what every exit does
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


def _value_of_now(*arguments: Any, **more: Any) -> Any:
    """Make a metric's value as the environment says when the first is made, not at the import."""
    chosen = prometheus_client.values.ValueClass = prometheus_client.values.get_value_class()
    return chosen(*arguments, **more)


if __name__ == "__main__":
    prometheus_client.values.ValueClass = _value_of_now
    for _, name, _ in pkgutil.walk_packages(service.cli.__path__, "service.cli."):
        if not name.startswith("service.cli.dev."):  # slow to import, and no command of a team's
            importlib.import_module(name)
    importlib.import_module("service.app.bootstrap")
    NoteKey.generate("example.com/first")  # OpenSSL looks itself up at the first key of a process
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as mine:
        _fork_for_each(mine)
    _run()
