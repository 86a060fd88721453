"""The worker beside `serve`'s processes is supervised, whatever they do."""

import errno
import gc
import os
import signal
import subprocess
import threading
from types import SimpleNamespace
from typing import cast

import pytest

import service
from service.app import worker, worker_process
from service.app.settings import Settings
from service.app.worker_process import WorkerProcess
from service.core import logs
from service.core.garbage import THRESHOLD
from tests.log_lines import logged
from tests.patience import until

pytestmark = pytest.mark.server  # real processes
MOMENT_SECONDS = 0.2
"""How long a fork may go on beside a start. One that has to wait does so to the end of it."""


@pytest.fixture
def forks():
    """The pids of forks that live until the test ends."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_fork_while_the_worker_starts_does_not_stop_its_supervision(monkeypatch, forks):
    """A fork that had inherited `Popen`'s pipe kept it waiting: nothing was restarted any more."""
    started: list[int] = []
    start = subprocess._fork_exec  # noqa: SLF001 - where the pipe is open

    def started_beside_a_fork(*arguments) -> int:
        pid = start(*arguments)
        started.append(pid)
        fork = threading.Thread(target=lambda: forks.append(os.fork() or _sleep()), daemon=True)
        fork.start()
        fork.join(MOMENT_SECONDS)
        return pid

    monkeypatch.setattr(subprocess, "_fork_exec", started_beside_a_fork)
    monkeypatch.setattr(worker_process, "_COMMAND", "import signal; signal.pause()")
    monkeypatch.setattr(worker_process, "RESTART_SECONDS", 0)
    with WorkerProcess():
        until(lambda: started)
        os.kill(started[0], signal.SIGKILL)
        until(lambda: len(started) > 1)
    until(lambda: len(forks) == len(started))


def test_a_worker_that_ends_while_all_stop_is_not_restarted(monkeypatch):
    """A terminal's signal reaches it, too, and `serve` waits for its requests meanwhile."""
    started: list[int] = []
    start = subprocess._fork_exec  # noqa: SLF001 - as above

    def noted(*arguments) -> int:
        started.append(start(*arguments))
        return started[-1]

    monkeypatch.setattr(subprocess, "_fork_exec", noted)
    monkeypatch.setattr(worker_process, "_COMMAND", "import signal; signal.pause()")
    monkeypatch.setattr(worker_process, "RESTART_SECONDS", 0)
    with WorkerProcess() as beside:
        until(lambda: started)
        beside.start_no_other()
        os.kill(started[0], signal.SIGKILL)
    assert len(started) == 1


def test_a_worker_that_cannot_be_killed_is_not_waited_for(monkeypatch):
    """The kernel may wait for a disk on its behalf; `serve` ends, and says so."""
    started: list[int] = []
    monkeypatch.setattr(subprocess.Popen, "terminate", lambda one: started.append(one.pid))
    monkeypatch.setattr(subprocess.Popen, "kill", lambda _one: None)
    monkeypatch.setattr(worker_process, "_COMMAND", "import signal; signal.pause()")
    monkeypatch.setattr(worker_process, "STOP_SECONDS", MOMENT_SECONDS)
    monkeypatch.setattr(worker_process, "KILL_SECONDS", MOMENT_SECONDS)
    with logged() as log:
        with WorkerProcess() as beside:
            until(lambda: beside._process)  # noqa: SLF001 - there is one to stop
        assert b"worker was killed and has not ended" in log.getvalue()
    os.kill(started[0], signal.SIGKILL)


def test_a_worker_that_cannot_be_started_is_tried_again(monkeypatch):
    """The machine had no memory for it; the thread that supervises does not end by that."""
    tries: list[None] = []

    def none_left(*_arguments) -> int:
        tries.append(None)
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "_fork_exec", none_left)
    monkeypatch.setattr(worker_process, "RESTART_SECONDS", 0)
    with WorkerProcess():
        until(lambda: len(tries) > 1)


def test_the_worker_is_of_the_release_that_serves(monkeypatch, tmp_path):
    """Wherever `serve` was started: the tree of another release may be the working directory."""
    (tmp_path / "service.py").touch()
    found = tmp_path / "found"
    command = f"import pathlib, service; pathlib.Path({str(found)!r}).write_text(service.__file__)"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker_process, "_COMMAND", command)
    with WorkerProcess():
        until(lambda: found.exists() and found.read_text())
    assert found.read_text() == service.__file__


def _sleep() -> int:
    signal.pause()
    os._exit(0)


def test_the_collector_passes_over_what_the_worker_has_imported(monkeypatch):
    """Following the log makes thousands of objects; those of the modules are not walked."""
    seen: list[tuple[bool, int]] = []

    async def look(*_given: object) -> None:
        seen.append((gc.get_freeze_count() > 0, gc.get_threshold()[0]))

    monkeypatch.setattr(worker, "_work", look)
    monkeypatch.setattr(logs, "configure", lambda _level: None)
    monkeypatch.setattr(worker, "ignore_stops", lambda: None)  # nor would what is started here end
    threshold = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700)
    try:
        worker.work(cast("Settings", SimpleNamespace(log_level="info")))
    finally:
        gc.freeze()
        gc.set_threshold(*threshold)
    assert seen == [(True, THRESHOLD)]
