"""The process that starts the API's workers: Granian's, with what its stop can miss."""

import asyncio
import select
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

import structlog
from granian.server.mp import MPServer, WorkerProcess

from service.app.heartbeats import BEAT_SECONDS, Heartbeats

_AGAIN_SECONDS: Final = 0.1
"""Between two attempts to tell the main thread of a stop."""

STEADY_SECONDS: Final = 60.0
"""A worker that lived longer has not failed twice in a row."""
REST_SECONDS_MAX: Final = 30.0
AGAIN_SECONDS: Final = 1.0
"""Until a worker that could not be started is tried again: it has not failed."""
FAILURES_MAX: Final = 3
"""In a row, of every worker: then whoever started this process has to know."""

Loader = Callable[..., Callable[..., Any]]


log = structlog.get_logger()


class MainProcess(MPServer):
    """Starts the workers, starts those again that failed, and stops all of them on a signal.

    It kills a worker whose event loop stands still, which has then failed. One that hangs keeps its
    share of the connections, and nothing else would end it.
    """

    when_stopping: Callable[[], object] | None = None
    """Called before the workers are told."""

    _signals: SimpleQueue[None]
    _is_stopping: threading.Event
    _heartbeats: Heartbeats

    def startup(self, spawn_target: Callable[..., None], target_loader: Loader) -> None:
        """Start the workers."""
        self._signals = SimpleQueue()
        self._is_stopping = threading.Event()
        self._heartbeats = Heartbeats(self.workers)
        threading.Thread(target=self._tell, name="signals", daemon=True).start()
        try:
            super().startup(spawn_target, target_loader)
        except OSError:  # those that were started would keep this process, deaf to signals
            self._stop_workers()
            raise

    def shutdown(self, exit_code: int = 0) -> None:
        """Stop the workers."""
        self._is_stopping.set()
        if self.when_stopping is not None:
            self.when_stopping()
        super().shutdown(exit_code)

    def _stop_workers(self) -> None:
        super()._stop_workers()
        if self.interrupt_signal:  # a terminal tells them, too: one that was faster has not failed
            self.interrupt_children.clear()

    def signal_handler_interrupt(self, *_signal: object, **_more: object) -> None:
        """Stop.

        A handler runs at any line of the main thread. Where that holds the lock of its event,
        setting the event would wait for ever; where it is about to clear it, as a worker has
        failed, the signal would be forgotten. A simple queue can be put to anywhere.
        """
        self.interrupt_signal = True
        self._signals.put(None)

    def signal_handler_reload(self, *_signal: object, **_more: object) -> None:
        """Stop on SIGHUP, too, as when a terminal closes; Granian would replace its workers."""
        self.signal_handler_interrupt()

    def _serve_loop(self, spawn_target: Callable[..., None], target_loader: Loader) -> None:
        """Start each worker again that has ended, until a signal comes.

        One that ends again and again rests before it is started, longer each time. Granian's loop
        would end all of them where one ends twice within seconds.
        """
        failures, due = Counter[int](), dict[int, float]()
        while not self.interrupt_signal:
            now = time.monotonic()
            while self.interrupt_children:
                nr = self.interrupt_children.pop()
                self._heartbeats.forget(nr)
                failures[nr] = failures[nr] + 1 if now - self.wrks[nr].birth < STEADY_SECONDS else 0
                due[nr] = now + rest_after(failures[nr])
            if all(nr in due and failures[nr] >= FAILURES_MAX for nr in range(self.workers)):
                log.error("no process of the API can run")
                self.interrupt_children.extend(due)  # by which the exit code is 1
                return
            for nr in [nr for nr, at in due.items() if at <= now]:
                del due[nr]
                if not self._start_again(nr, spawn_target, target_loader):
                    due[nr] = now + AGAIN_SECONDS
            rest = min([BEAT_SECONDS, *(at - now for at in due.values())])
            if not self.main_loop_interrupt.wait(rest):
                self._kill_silent(rest)
            self.main_loop_interrupt.clear()

    def _kill_silent(self, waited_seconds: float) -> None:
        """Kill each worker that shows no heartbeat any more; it is then one that has ended.

        None where nobody reads our lines: whoever writes one waits for that, and so would those
        that we started instead.
        """
        silent = self._heartbeats.silent_after(waited_seconds)
        for nr in silent if silent and _is_read() else ():
            process = self.wrks[nr].inner  # by `kill` of the worker itself, we would expect its end
            log.error("a process of the API hangs and is killed", pid=process.pid)
            process.kill()

    def _start_again(
        self, nr: int, spawn_target: Callable[..., None], target_loader: Loader
    ) -> bool:
        """Start a worker in place of one that has ended; return whether it could be started."""
        worker, error_type = self._spawn_worker(nr, spawn_target, target_loader), None
        try:
            worker.start()
        except OSError as error:  # no memory is left for it, or no process
            error_type = type(error).__name__
        if error_type is not None:
            log.error("worker cannot be started", error_type=error_type)
            return False
        self.wrks[nr] = worker
        return True

    def _tell(self) -> None:
        """Wake the main thread until it stops."""
        self._signals.get()
        while not self._is_stopping.is_set():
            self.main_loop_interrupt.set()
            self._is_stopping.wait(_AGAIN_SECONDS)

    def _spawn_worker(
        self, idx: int, target: Callable[..., None], callback_loader: Loader
    ) -> WorkerProcess:
        beating = partial(_beating, self._heartbeats, idx, callback_loader)
        worker = super()._spawn_worker(idx, target, beating)
        worker.__class__ = _Worker
        return worker


def _is_read() -> bool:
    """Return whether stdout, which has the lines of our log, takes another one at once."""
    return bool(select.select([], [sys.stdout], [], 0)[1])


def _beating(heartbeats: Heartbeats, nr: int, load: Callable[[], object]) -> object:
    """Return a worker's application, in the worker, whose loop beats once it runs."""
    application = load()
    heartbeats.begin(nr, asyncio.get_event_loop())  # Granian has set it
    return application


def rest_after(failures: int) -> float:
    """Return for how many seconds a worker rests that has failed so often in a row, at first 0."""
    return min(2.0 ** (failures - 2), REST_SECONDS_MAX) if failures > 1 else 0.0


class _Worker(WorkerProcess):
    """A worker whose end one thread alone waits for.

    Where two ask the system, it tells one of them. The other took a worker that had just ended for
    one that refused to stop, and killed whatever has its process id.
    """

    _end: threading.Thread

    def _watch(self) -> None:
        self._end = threading.Thread(target=self._watcher)
        try:
            self._end.start()
        except RuntimeError as error:  # no thread is left, of as many as a system permits
            self.inner.kill()
            self.inner.join()
            raise BlockingIOError(str(error)) from error

    def is_alive(self) -> bool:
        return self._end.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._end.join(timeout)
