"""The release before this one: its tree from git, with an environment of its own."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Release(NamedTuple):
    """A tree, and the `claim-ledger` that runs it."""

    name: str
    tree: Path
    command: Path


def release_before(directory: Path) -> Release:
    """Return the release before, with its tree in a directory.

    Its libraries are those of its own lock, from uv's cache or the package index.
    """
    commit = commit_before()
    packed = subprocess.run(
        ["git", "archive", "--format=tar", commit], cwd=ROOT, capture_output=True, check=True
    ).stdout
    # Debian's Python 3.11.2 cannot yet extract with a filter.
    subprocess.run(["tar", "--extract", "--directory", directory], input=packed, check=True)
    environment = {name: text for name, text in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run(
        ["uv", "sync", "--quiet", "--locked", "--no-default-groups", "--extra", "kms"],
        cwd=directory,
        env=environment,
        check=True,
    )
    name = _git("describe", "--tags", "--always", commit)
    return Release(name, directory, directory / ".venv" / "bin" / "claim-ledger")


def commit_before() -> str:
    """Return the newest tag before this commit; without one, what the newest migration followed."""
    newest = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", "migrations/versions")
    return tag_before() or f"{newest}~1"


def tag_before() -> str:
    """Return the newest tag before this commit, which may have the newest schema; empty: none."""
    return _git("describe", "--tags", "--abbrev=0", "HEAD^")


def has_history() -> bool:
    """Return whether git is here, with more than the newest commit."""
    return (ROOT / ".git").exists() and _git("rev-parse", "--is-shallow-repository") == "false"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
