"""Processes that are forked before a command begins, and do what they are asked."""

import os
import signal
from pathlib import Path

import pytest

from service.core.forked_processes import SpareGone, Spares, forked
from tests.patience import eventually


def tell(pipe, asked):
    """Send what was asked, and what the process is."""
    stdin = os.read(0, 1)
    pipe.send((asked, os.getpid(), os.getpgid(0), os.getpriority(os.PRIO_PROCESS, 0), stdin))


def fail(_pipe, asked):
    """Fail."""
    raise ValueError(asked)


def hold(pipe, count):
    """Fork processes, and wait."""
    held = [forked() for _ in range(count)]
    pipe.send([one.pid for one in held])
    signal.pause()


async def test_a_spare_does_one_thing_after_the_other():
    """In a group of its own, which Ctrl-C does not reach, and without the terminal's input."""
    with Spares(2) as spares, spares.borrowed() as spare:
        for asked in ("one", "two"):
            spare.ask(tell, asked)
            niceness = os.getpriority(os.PRIO_PROCESS, 0)
            assert await spare.receive() == (asked, spare.pid, spare.pid, niceness, b"")
        spare.is_idle = True
        assert len(spares) == 1
    assert spare.has_ended


async def test_a_spare_whose_work_fails_has_gone(capfd):
    """It tells the fault where a command's own are told."""
    with Spares(1) as spares:
        with spares.borrowed() as spare:
            spare.ask(fail, "not this")
            with pytest.raises(SpareGone):
                await spare.receive()
        assert (spare.has_ended, len(spares)) == (True, 0)
    assert "ValueError: not this" in capfd.readouterr().err


async def test_a_spare_that_is_still_at_work_is_ended():
    """Whoever borrowed it was cut off: nobody is left to take its answers."""
    with Spares(1) as spares:
        with spares.borrowed() as spare:
            spare.ask(tell, "nobody receives it")
        assert (spare.has_ended, len(spares)) == (True, 0)
    with pytest.raises(SpareGone):
        spare.ask(tell, "too late")


def test_there_are_as_many_as_the_system_has_room_for(monkeypatch):
    """A limit of processes is no reason to do nothing at all."""
    fork, made = os.fork, []

    def limited():
        if made:
            raise BlockingIOError
        made.append(1)
        return fork()

    monkeypatch.setattr(os, "fork", limited)
    with Spares(3) as spares:
        assert len(spares) == 1


def test_spares_end_where_nobody_is_told_of_children():
    """A program may have been started with SIGCHLD ignored."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with Spares(2) as spares, spares.borrowed() as spare:
            os.kill(spare.pid, signal.SIGKILL)
            spare.is_idle = False
        assert (spare.has_ended, is_there(spare.pid)) == (True, False)
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_spares_end_with_the_process_that_forked_them():
    """Also where that is killed, and can end nothing."""
    holder = forked()
    holder.ask(hold, 2)
    pids = await holder.receive()
    assert [is_there(pid) for pid in pids] == [True, True]
    holder.end()
    await eventually(lambda: not any(is_there(pid) for pid in pids))


def is_there(pid):
    """Return whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
