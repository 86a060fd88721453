"""The process that starts the API's workers: Granian's, with what its stop can miss."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

from granian.server.mp import MPServer, WorkerProcess

_AGAIN_SECONDS: Final = 0.1
"""Between two attempts to tell the main thread of a stop."""

Loader = Callable[..., Callable[..., Any]]


class MainProcess(MPServer):
    """Starts the workers, starts those again that failed, and stops all of them on a signal."""

    when_stopping: Callable[[], object] | None = None
    """Called before the workers are told."""

    _signals: SimpleQueue[None]
    _is_stopping: threading.Event

    def startup(self, spawn_target: Callable[..., None], target_loader: Loader) -> None:
        """Start the workers."""
        self._signals = SimpleQueue()
        self._is_stopping = threading.Event()
        threading.Thread(target=self._tell, name="signals", daemon=True).start()
        super().startup(spawn_target, target_loader)

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

    def _tell(self) -> None:
        """Wake the main thread until it stops."""
        self._signals.get()
        while not self._is_stopping.is_set():
            self.main_loop_interrupt.set()
            self._is_stopping.wait(_AGAIN_SECONDS)

    def _spawn_worker(
        self, idx: int, target: Callable[..., None], callback_loader: Loader
    ) -> WorkerProcess:
        worker = super()._spawn_worker(idx, target, callback_loader)
        worker.__class__ = _Worker
        return worker


class _Worker(WorkerProcess):
    """A worker whose end one thread alone waits for.

    Where two ask the system, it tells one of them. The other took a worker that had just ended for
    one that refused to stop, and killed whatever has its process id.
    """

    _end: threading.Thread

    def _watch(self) -> None:
        self._end = threading.Thread(target=self._watcher)
        self._end.start()

    def is_alive(self) -> bool:
        return self._end.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._end.join(timeout)
