"""Processes that `serve` forks end when they are told to, however early, and with `serve`."""

import signal
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server  # real processes
FORKS = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: None)  # as the server's own handler, which goes on
os.register_at_fork(after_in_child=lambda: {first})
from service.app.forks import prepare_forks
prepare_forks()
if (pid := os.fork()) == 0:
    signal.pause()
{then}
"""


def _run(*, first: str = "None", then: str) -> "subprocess.CompletedProcess[str]":
    program = FORKS.format(first=first, then=then)
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, check=False, text=True, capture_output=True, timeout=PATIENCE_SECONDS
    )


def test_a_fork_that_is_told_to_stop_at_once_ends():
    """The signal comes before the fork has left our handlers behind."""
    done = _run(
        first="os.kill(os.getpid(), signal.SIGTERM)",
        then="print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    )
    assert done.stdout == f"{-signal.SIGTERM}\n"


def test_a_fork_is_killed_with_its_parent():
    """Its end closes the pipe that both have, so that this returns at all."""
    done = _run(then="os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL
