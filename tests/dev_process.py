"""`claim-ledger` as a separate process, and what it must not leave behind."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service.cli.dev.state import PEOPLE, DevState
from tests.databases import with_logins
from tests.patience import PATIENCE_SECONDS, until
from tests.prepared import prepared, run_prepared, start_prepared
from tests.processes import start

PROGRAM = Path(sys.executable).parent / "claim-ledger"
_PR_SET_CHILD_SUBREAPER = 36


def environment(**given: str) -> dict[str, str]:
    """Return our environment with only these settings of the service, and those they imply."""
    given = with_logins(given)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CLAIM_LEDGER_")}
    return kept | {f"CLAIM_LEDGER_{name}": value for name, value in given.items()}


def run(
    *arguments: str | bytes | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for its end."""
    return run_prepared(arguments, env or environment(), cwd)


class Dev:
    """A `claim-ledger dev` for one test, on a free port."""

    def __init__(self, data_dir: Path, *, wait: bool = True, stdout: int | None = None) -> None:
        """Start it; with `wait`, return once it answers.

        With `stdout` it is the installed program; without, a fork that prints to a file.
        """
        self.data_dir = data_dir
        self._silent = stdout is not None
        self._said = data_dir.parent / f"{data_dir.name}.err"
        arguments = ["dev", "--port", "0", "--data-dir", data_dir]
        env = environment(RATE_LIMIT_PER_MINUTE="100000")
        out = data_dir.parent / f"{data_dir.name}.out"
        with out.open("wb") as printed, self._said.open("wb") as said:
            self.process = (
                start([PROGRAM, *arguments], stdout=stdout, stderr=said, env=env)
                if self._silent
                else start_prepared(arguments, env, printed, said)
            )
        if wait:
            self.wait_until_up()

    @property
    def facts(self) -> dict[str, Any]:
        """The content of dev.json."""
        return json.loads((self.data_dir / "dev.json").read_text())

    def environment(self, **given: str) -> dict[str, str]:
        """Return the environment of a team that works on its database, by settings of its own."""
        state = DevState.of_running(self.data_dir)
        urls = {f"{ledger.upper()}_DATABASE_URL": url for ledger, url in state.ledger_urls.items()}
        settings = {
            "DATABASE_URL": state.database_url,
            "MASTER_KEYS": state.master_keys,
            "PUBLIC_URL": state.public_url,
            "STAFF": PEOPLE["team"],
        }
        return environment(**settings | urls | given)

    @property
    def printed(self) -> str:
        """What it has printed so far."""
        return (self.data_dir.parent / f"{self.data_dir.name}.out").read_text()

    def wait_until_up(self) -> None:
        """Wait for dev.json; fail with the process's output if it ends first."""
        until(lambda: (self.data_dir / "dev.json").exists() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise AssertionError(self._said.read_text())
        # The facts for programs come first, so that who has read the text finds them.
        until(lambda: self.printed.endswith("'\n\n") or self._silent)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send it a signal; return its exit code and its stderr."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_SECONDS)
        return code, self._said.read_text()


@contextmanager
def no_orphans() -> Generator[None, None, None]:
    """Fail if a process started in the block does not end by itself.

    Orphans become children of this process, however they have left their session.
    """
    prepared()  # a child that stays
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _children()
    try:
        yield
        until(lambda: not _alive(_children() - before))
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid in _children() - before:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def _alive(pids: set[int]) -> list[int]:
    return [pid for pid in pids if state(pid) not in {"Z", "X", ""}]


def state(pid: int) -> str:
    """Return the state of a process's first thread, as `ps` shows it; "" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
