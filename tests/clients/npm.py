"""Node's tools, run for a test."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TYPESCRIPT = Path("clients/typescript").resolve()
QUIET = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_loglevel": "error"}


def run(
    command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command; raise AssertionError with what it printed unless it succeeds."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | QUIET | (env or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
