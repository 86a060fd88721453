"""What the drills do to machines can be done in any order."""

from pathlib import Path

import pytest

from tests.bench.processes import children
from tests.drills.machines import Machine, home_of_machines
from tests.patience import until

pytestmark = pytest.mark.server


def test_a_machine_that_was_frozen_can_be_killed_and_started_again():
    """Its network ends with it, which others are told of."""
    with home_of_machines() as home:
        machine = Machine("one", 1, home)
        for _ in range(2):
            machine.start()
            program = machine.run(["sleep", "3600"], "sleep.log", {})
            until(lambda pid=program.pid: children(pid))
            machine.freeze()
            until(lambda pid=program.pid: _state(pid) == "T")
            machine.thaw()
            machine.die()
            assert program.returncode is not None


def test_a_machine_that_vanishes_is_off_at_once():
    """Whatever its kernel would still tell others, or keeps of its network for that."""
    with home_of_machines() as home:
        machine = Machine("one", 1, home)
        machine.start()
        program = machine.run(["sleep", "3600"], "sleep.log", {})
        until(lambda: children(program.pid))
        (inside,) = children(program.pid)
        with Path(f"/proc/{inside}/ns/net").open():
            machine.vanish()
            assert program.returncode is not None


def _state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
