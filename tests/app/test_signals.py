"""A process that has stopped, and is told to stop once more while Python ends."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.server  # real processes
# Python takes its handlers away before it clears this module, which tells the process to stop.
ENDS = """
import os, signal
from unittest.mock import DEFAULT, AsyncMock, Mock, patch
from service.app import serve, worker

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), numbers=(1, 2, 15)):
        for number in numbers:
            kill(pid, number)

last = Last()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: None)  # as the server's own handlers
parts = dict.fromkeys({parts}, DEFAULT)
with patch.multiple({module}, **parts):
    {call}
"""
PROCESSES = {
    "serve": {
        "module": "serve",
        "parts": [
            *("_check_address", "master_keys", "allow_files", "logs", "warn_of_untrusted_proxy"),
            *("check_logins", "check_ring", "asyncio", "prepare_forks", "_import_application"),
            "MainProcess",
        ],
        "call": "serve.serve_forever(Mock(operations_port=None, run_worker=False))",
    },
    "worker": {
        "module": "worker",
        "parts": ["logs", "leave_out_what_is_there", "_work"],
        "call": "worker.work(Mock())",
    },
}


@pytest.mark.parametrize("name", PROCESSES)
def test_a_second_stop_does_not_change_how_a_process_ends(name):
    """It exits with 0, as it has done all that the first one asked for."""
    command = [sys.executable, "-c", ENDS.format(**PROCESSES[name])]
    ended = subprocess.run(command, check=False, timeout=PATIENCE_SECONDS, capture_output=True)
    assert ended.returncode == 0, ended.stderr
