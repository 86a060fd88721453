"""A signal stops `serve` at whatever line of Granian's it comes."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from select import PIPE_BUF
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from granian.constants import Interfaces
from granian.server.mp import MPServer

from service.app import main_process
from service.app.heartbeats import BEAT_SECONDS, SILENT_SECONDS_MAX, Heartbeats
from service.app.main_process import (
    AGAIN_SECONDS,
    FAILURES_MAX,
    REST_SECONDS_MAX,
    STEADY_SECONDS,
    MainProcess,
)
from service.core.logs import GRANIAN_LOGGING
from tests.patience import PATIENCE_SECONDS
from tests.processes import free_port

# A server whose processes are killed after a short silence. It tells its own id first.
HANGS = """
import asyncio, os, sys
from granian.constants import Interfaces, Loops
from service.app import heartbeats

heartbeats.BEAT_SECONDS, heartbeats.SILENT_SECONDS_MAX = 0.05, 1.0
from service.app.forks import prepare_forks
from service.app.main_process import MainProcess
from service.core.logs import GRANIAN_LOGGING, configure

configure("info")
prepare_forks()

def load():
    soon = asyncio.get_event_loop().call_soon
    soon(soon, os.write, 1, b'beats "pid":%d\\n' % os.getpid())  # once the loop has come round
    return lambda *_: None

MainProcess(
    "none:none",
    port=int(sys.argv[1]),
    workers=2,
    interface=Interfaces.ASGINL,
    loop=Loops.uvloop,
    log_dictconfig=GRANIAN_LOGGING,
).serve(target_loader=load, wrap_loader=False)
"""


@pytest.fixture
def server(monkeypatch):
    """A server that has started, without workers."""
    monkeypatch.setattr(MPServer, "startup", lambda *_: None)
    monkeypatch.setattr(MPServer, "shutdown", lambda *_: None)
    server = MainProcess(
        "none:none", workers=2, interface=Interfaces.ASGI, log_dictconfig=dict(GRANIAN_LOGGING)
    )
    server.startup(lambda: None, lambda: lambda: None)
    yield server
    server.shutdown()


def test_a_stop_is_not_forgotten(server):
    """It came where the event was locked, and another time just before it was cleared."""
    woken = server.main_loop_interrupt
    with woken._cond:  # noqa: SLF001 - as while the main thread begins to wait
        server.signal_handler_interrupt()
    assert woken.wait(PATIENCE_SECONDS)
    woken.clear()
    assert woken.wait(PATIENCE_SECONDS)
    assert server.interrupt_signal


def test_a_terminal_that_hangs_up_stops_it(server):
    """It does not have its workers replaced, as Granian would."""
    server.signal_handler_reload()
    assert server.main_loop_interrupt.wait(PATIENCE_SECONDS)
    assert (server.interrupt_signal, server.reload_signal) == (True, False)


def test_workers_that_ended_at_the_same_signal_have_not_failed(server):
    """A terminal sends it to all: the exit code is that of a stop."""
    server.interrupt_children.append(0)
    server.signal_handler_interrupt()
    server._stop_workers()  # noqa: SLF001 - of which there is none
    assert server.interrupt_children == []


class Ends:
    """Workers end so many seconds after their start; stands for the time, and for what waits."""

    def __init__(self, server: MainProcess, workers: int, ends: list[tuple[float, list[int]]]):
        self.now = self.started_at = self.ended_at = 1000.0
        self.rests = list[float]()
        self.unstarted = 0
        """How many cannot be started."""
        self._server, self._ends, self._down = server, ends, 0
        server.workers = workers
        server.wrks = [SimpleNamespace(birth=self.now) for _ in range(workers)]
        server.main_loop_interrupt = self
        server._spawn_worker = self.spawn  # noqa: SLF001 - Granian's

    def monotonic(self) -> float:
        """Return the time."""
        return self.now

    def wait(self, seconds: float) -> bool:
        """Return whether meanwhile a worker has ended, once all run, or a signal has come."""
        if not self._down and not self._ends:
            self._server.interrupt_signal = True
            return True
        if not self._down and self.started_at + self._ends[0][0] <= self.now + seconds:
            life, workers = self._ends.pop(0)
            self.now = self.ended_at = self.started_at + life
            self._down = len(workers)
            self._server.interrupt_children += workers
            return True
        self.now += seconds
        return False

    def clear(self) -> None:
        """Forget nothing."""

    def set(self) -> None:
        """Tell nobody."""

    def spawn(self, *_: object) -> SimpleNamespace:
        """Return a worker, which is not started yet."""
        return SimpleNamespace(birth=self.now, start=self.start)

    def start(self) -> None:
        """Start a worker, and note how long it rested."""
        if self.unstarted:
            self.unstarted -= 1
            raise BlockingIOError
        self.rests.append(self.now - self.ended_at)
        self.started_at = self.now
        self._down -= 1


@pytest.fixture
def ending(server, monkeypatch):
    """Return a function that runs the loop while workers end."""

    def run(workers, ends, unstarted=0):
        made = Ends(server, workers, ends)
        made.unstarted = unstarted
        monkeypatch.setattr(main_process, "time", made)
        server._serve_loop(lambda: None, lambda: lambda: None)  # noqa: SLF001 - Granian's
        return made.rests

    return run


def test_a_worker_that_ends_again_and_again_ends_no_other(server, ending):
    """It rests longer each time, and not at all once it has been steady."""
    lives = [1] * 8 + [STEADY_SECONDS, 1]
    rests = ending(2, [(life, [1]) for life in lives])
    assert rests == [0, 1, 2, 4, 8, 16, REST_SECONDS_MAX, REST_SECONDS_MAX, 0, 0]
    assert (server.interrupt_signal, server.interrupt_children) == (True, [])


def test_a_worker_that_cannot_be_started_ends_no_other(server, ending):
    """Where no process is left, say, it is tried again each second, and has not failed."""
    assert ending(2, [(1, [0]), (1, [0])], 5) == [5 * AGAIN_SECONDS, 1]
    assert len(server.wrks) == 2
    assert (server.interrupt_signal, server.interrupt_children) == (True, [])


@pytest.mark.server
def test_a_worker_that_hangs_is_killed_and_replaced():
    """Here it is stopped. Each of its connections would wait, while others succeed."""
    command = [sys.executable, "-c", HANGS, str(free_port())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = process.stdout
        assert lines is not None

        def said(text: str) -> int:
            """Return the process id of the next line with this text."""
            line = next(line for line in lines if text in line)
            return int(re.findall(r'"pid":(\d+)', line)[0])

        try:
            said("beats")
            hangs = _stopped(lambda: said("beats"))
            while said("a process of the API hangs and is killed") != hangs:
                pass  # another one had no processor for as long
            said("beats")
            process.terminate()
            process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert process.returncode == 0


def _stopped(beats: Callable[[], int]) -> int:
    """Stop a process that `beats` returns; one that had no processor may be killed by now."""
    while True:
        process_id = beats()
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGSTOP)
            return process_id


def test_who_does_not_beat_for_as_long_as_we_waited_is_silent():
    """Not who has not begun, or has ended; and again only after as long a silence."""
    heartbeats = Heartbeats(3)
    loop = asyncio.new_event_loop()
    for nr in (0, 2):
        heartbeats.begin(nr, loop)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    heartbeats.forget(2)
    assert heartbeats.silent_after(SILENT_SECONDS_MAX) == []  # it is the first that is seen of them
    for _ in range(2):
        assert heartbeats.silent_after(SILENT_SECONDS_MAX - BEAT_SECONDS) == []
        assert heartbeats.silent_after(BEAT_SECONDS) == [0]


def test_nobody_is_killed_who_waits_for_the_reader_of_the_log(server, monkeypatch):
    """As where a terminal holds its output back: who came instead would wait, too."""
    kill_silent, killed = server._kill_silent, []  # noqa: SLF001 - as its loop does each second
    server.wrks = [SimpleNamespace(inner=SimpleNamespace(pid=1, kill=lambda: killed.append(1)))]
    monkeypatch.setattr(Heartbeats, "silent_after", lambda *_: [0])
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with os.fdopen(reads, "rb") as reader, os.fdopen(writes, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(main_process, "log", Mock())
        held = 0
        with suppress(BlockingIOError):
            while True:
                held += os.write(writes, bytes(PIPE_BUF))
        kill_silent(SILENT_SECONDS_MAX)
        assert (killed, len(reader.read(held))) == ([], held)
        kill_silent(SILENT_SECONDS_MAX)
        assert killed == [1]


def test_it_does_not_start_without_all_of_them(server, monkeypatch):
    """Those that were started would keep it, and it would hear no signal."""

    def startup(*_: object) -> None:
        server.wrks.append(
            SimpleNamespace(idx=0, terminate=ended.set, join=ended.wait, is_alive=lambda: False)
        )
        raise BlockingIOError

    ended = threading.Event()
    monkeypatch.setattr(MPServer, "startup", startup)
    with pytest.raises(BlockingIOError):
        server.startup(lambda: None, lambda: lambda: None)
    assert (ended.is_set(), server.wrks) == (True, [])


def test_it_ends_where_no_worker_can_run(server, ending):
    """Whoever started it has to know. The exit code is not that of a stop."""
    assert ending(2, [(1, [0, 1])] * FAILURES_MAX) == [0, 0, 1, 1]
    assert (server.interrupt_signal, sorted(server.interrupt_children)) == (False, [0, 1])


def test_nobody_is_started_while_it_stops(server):
    """The worker beside is told first."""
    told = []
    server.when_stopping = partial(told.append, "stopping")
    server.shutdown()
    assert told == ["stopping"]
