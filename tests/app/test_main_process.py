"""A signal stops `serve` at whatever line of Granian's it comes."""

import pytest
from granian.constants import Interfaces
from granian.server.mp import MPServer

from service.app.main_process import MainProcess
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def server(monkeypatch):
    """A server that has started, without workers."""
    monkeypatch.setattr(MPServer, "startup", lambda *_: None)
    monkeypatch.setattr(MPServer, "shutdown", lambda *_: None)
    server = MainProcess("none:none", interface=Interfaces.ASGI)
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


def test_a_stop_follows_a_reload(server):
    """Each wakes the server, which has done the first by then."""
    woken = server.main_loop_interrupt
    server.signal_handler_reload()
    assert woken.wait(PATIENCE_SECONDS)
    assert server.reload_signal
    server.reload_signal = False  # as the server does, and then clears the event
    woken.clear()
    server.signal_handler_interrupt()
    assert woken.wait(PATIENCE_SECONDS)
