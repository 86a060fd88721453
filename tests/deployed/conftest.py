"""Tests of what `deploy/` describes, which need its programs: `just topology`, `just test-image`.

No test of `just test` is here.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a directory that servers of other users can read."""
    with tempfile.TemporaryDirectory(prefix="claim-ledger-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
