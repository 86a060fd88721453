"""Processes that `serve` forks end when they are told to, at any moment, and with `serve`."""

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
    {fork}
{then}
"""
# A worker that is told to stop while its application is made.
STARTS = """
    import asyncio
    from unittest.mock import Mock, patch
    from service.app import serve
    asyncio.set_event_loop(asyncio.new_event_loop())
    made = Mock(side_effect=lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    with (
        patch("service.app.serve.Settings"),
        patch("service.app.serve.logs"),
        patch("service.app.bootstrap.Service", made),
    ):
        serve.application()
"""
# A loop that runs twice, as in one of Granian's workers, and what its handler heard in the end.
RUNS = """
import asyncio, os, signal, uvloop
from service.app.forks import keep_stops

def told(*numbers):
    for number in numbers:
        os.kill(os.getpid(), number)

async def until_told():
    while not heard:
        await asyncio.sleep(0)
    told(signal.SIGTERM)
    await late.wait()

heard = []
late = asyncio.Event()
loop = uvloop.new_event_loop()
keep_stops(loop, late.set, 0)
{before}
for number in (signal.SIGINT, signal.SIGTERM):
    loop.add_signal_handler(number, heard.append, int(number))
loop.run_until_complete(asyncio.sleep(0))
{between}
loop.run_until_complete(until_told())
print(heard)
"""


def _run(
    *, first: str = "None", fork: str = "signal.pause()", then: str
) -> "subprocess.CompletedProcess[str]":
    return _python(FORKS.format(first=first, fork=fork.strip(), then=then))


def _python(program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, check=False, text=True, capture_output=True, timeout=PATIENCE_SECONDS
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_fork_that_is_told_to_stop_at_once_ends(number):
    """The signal comes before the fork has left our handlers behind."""
    done = _run(
        first=f"os.kill(os.getpid(), {number:d})",
        then="print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    )
    assert (done.stdout, done.stderr) == (f"{-number}\n", "")


def test_a_worker_that_is_told_to_stop_while_it_starts_ends():
    """Nothing has begun that would have to be finished."""
    done = _run(
        then="print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
        fork=STARTS,
    )
    assert (done.stdout, done.stderr) == (f"{-signal.SIGTERM}\n", "")


def test_a_fork_is_killed_with_its_parent():
    """Its end closes the pipe that both have, so that this returns at all."""
    done = _run(then="os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("told(signal.SIGTERM)", ""),
        ("told(signal.SIGINT, signal.SIGTERM)", ""),
        ("", "told(signal.SIGTERM)"),
        ("", "told(signal.SIGINT, signal.SIGTERM)"),
        ("", "loop.call_soon(told, signal.SIGTERM)"),
        ("", "loop.call_soon(told, signal.SIGINT, signal.SIGTERM)"),
    ],
)
def test_a_worker_hears_of_one_stop_whenever_it_comes(before, between):
    """Before its loop runs, between its runs, twice at once, or while it runs; then it is late."""
    done = _python(RUNS.format(before=before, between=between))
    assert (done.stdout in {"[2]\n", "[15]\n"}, done.stderr) == (True, "")
