"""Commands as process 1 of a container, which the kernel ends at no signal by itself."""

import signal
import sys
from subprocess import PIPE

from tests.dev_process import environment
from tests.processes import free_port, started
from tests.world import MASTER_KEY

AS_ONE = "import os; os.getpid = lambda: 1; from service.cli import main; main()"
"""To be it takes a namespace of processes, which not every machine lets a test make."""


def test_sigterm_ends_a_command(tmp_path):
    """It says nothing more, and a shell has the code that it has of any other process."""
    url = f"postgresql://claim_ledger:secret@127.0.0.1:{free_port()}/claim_ledger"
    given = environment(DATABASE_URL=url, MASTER_KEYS=MASTER_KEY)
    command = [sys.executable, "-c", AS_ONE, "migrate", "--wait", "86400"]
    with started(command, env=given, stderr=PIPE, cwd=tmp_path) as process:
        assert process.stderr.readline().startswith(b"waiting for PostgreSQL at ")
        process.send_signal(signal.SIGTERM)
        assert process.communicate() == (None, b"")
    assert process.returncode == 128 + signal.SIGTERM
