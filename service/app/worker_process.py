"""The process beside `serve`'s: it is restarted when it ends, and never outlives it."""

import os
import subprocess
import sys
import threading
from types import TracebackType
from typing import Final, Self

import structlog

RESTART_SECONDS: Final = 1.0
"""Rest before a worker that ended is started again: a fault at its start must not spin."""
STOP_SECONDS: Final = 10.0
"""After this a worker that does not stop is killed; what it had under way is rolled back."""
KILL_SECONDS: Final = 2.0
"""A process that is killed ends at once, unless the kernel waits for a disk on its behalf."""

METRICS_DIRECTORY: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Where the API's processes keep their metrics. To prometheus-client this variable says that there
are several of a process: in the worker, of which there is one, it must not be set."""

_COMMAND: Final = (
    # Ctrl-C reaches it, too: before it can end in order, `serve` ends it by SIGTERM.
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from service.core.parent import die_with; die_with(int(sys.argv[1])); "
    f"directory = os.environ.pop('{METRICS_DIRECTORY}', None); "
    "from service.app.settings import SERVE, Settings; from service.app.worker import work_beside; "
    "work_beside(Settings.from_environment(require=SERVE), directory)"
)

_starting: Final = threading.Lock()
"""Held while the worker is started, and while the server forks. A fork in between would inherit the
pipe by which `Popen` hears that the program runs, and `Popen` would wait for that fork's end."""
os.register_at_fork(
    before=_starting.acquire, after_in_parent=_starting.release, after_in_child=_starting.release
)

log = structlog.get_logger()


class WorkerProcess:
    """Runs the worker while the context is open, by the environment of this process."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker", daemon=True)

    def __enter__(self) -> Self:
        """Start the worker."""
        self._thread.start()
        return self

    def start_no_other(self) -> None:
        """Let the worker that runs be the last one: whoever stops us may have stopped it, too."""
        self._stopping.set()

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Stop the worker and wait until it has ended, as far as it can be stopped."""
        self.start_no_other()
        one = subprocess.Popen[bytes]
        for stop, patience in ((one.terminate, STOP_SECONDS), (one.kill, KILL_SECONDS)):
            if self._process is not None:
                stop(self._process)
            self._thread.join(patience)
            if not self._thread.is_alive():
                return
        log.error("worker was killed and has not ended")

    def _supervise(self) -> None:
        while not self._stopping.is_set():
            code = error_type = None
            try:
                code = self._run()
            except OSError as error:  # no memory is left for it, or no process
                error_type = type(error).__name__
            if not self._stopping.wait(RESTART_SECONDS):
                log.error("worker ended and is restarted", exit_code=code, error_type=error_type)

    def _run(self) -> int:
        with _starting:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                # Without -P, modules of the working directory would come before our own.
                [sys.executable, "-P", "-c", _COMMAND, str(os.getpid())]
            )
        if self._stopping.is_set():  # set before there was a process to stop
            self._process.terminate()
        return self._process.wait()
