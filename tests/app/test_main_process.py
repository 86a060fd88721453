"""A signal stops `serve` at whatever line of Granian's it comes."""

from functools import partial

import pytest
from granian.constants import Interfaces
from granian.server.mp import MPServer

from service.app.main_process import MainProcess
from service.core.logs import GRANIAN_LOGGING
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server(monkeypatch):
    """A server that has started, without workers."""
    monkeypatch.setattr(MPServer, "startup", lambda *_: None)
    monkeypatch.setattr(MPServer, "shutdown", lambda *_: None)
    server = MainProcess(
        "none:none", interface=Interfaces.ASGI, log_dictconfig=dict(GRANIAN_LOGGING)
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


def test_nobody_is_started_while_it_stops(server):
    """The worker beside is told first."""
    told = []
    server.when_stopping = partial(told.append, "stopping")
    server.shutdown()
    assert told == ["stopping"]
