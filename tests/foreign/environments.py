"""Environments with verifiers that are not ours, apart from the project's own."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

PYTHON_PACKAGES = ("aics-tlog==0.2.1", "scitt-cose==0.5.0")
NODE_PACKAGES = ("@transmute/cose@0.2.11",)
PYTHON_MIN = (3, 12)
"""What `aics-tlog` runs on."""


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever becomes of it."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def succeed(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """Run a command; return what it printed, or raise AssertionError with it."""
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python_environment(folder: Path) -> Path:
    """Return the folder of programs of an environment with the packages for Python."""
    succeed(["uv", "venv", "-q", "--no-project", "--python", _interpreter(), folder])
    succeed(["uv", "pip", "install", "-q", "--python", folder / "bin/python", *PYTHON_PACKAGES])
    return folder / "bin"


def node_environment(folder: Path) -> Path:
    """Return a folder in which Node finds the packages from npm."""
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    succeed(["npm", "install", "--silent", "--no-audit", "--no-fund", *NODE_PACKAGES], folder)
    return folder


def _interpreter() -> Path:
    """Return a Python that is new enough; raise AssertionError if none is here."""
    test = f"import sys; raise SystemExit(sys.version_info < {PYTHON_MIN})"
    for one in _candidates():
        if run(one, "-c", test).returncode == 0:
            return one
    raise AssertionError(f"no Python from {PYTHON_MIN} on: put one on the PATH")


def _candidates() -> Iterator[Path]:
    for name in ("python3.12", "python3.13", "python3.14", "python3"):
        if found := shutil.which(name):
            yield Path(found)
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(home.glob("versions/3.*/bin/python3"), reverse=True)
