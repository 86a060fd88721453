"""Running devs that tests share: one for reading, and a used directory to start on."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dev_process import Dev


@pytest.fixture(scope="module")
def dev(tmp_path_factory) -> Iterator[Dev]:
    """Return a running dev for tests that only read, in a directory of the default name.

    Of a module, not of a process of the run: until its end, a dev polls, a second of CPU a minute.
    """
    one = Dev(tmp_path_factory.mktemp("running") / ".claim-ledger")
    yield one
    one.end()


@pytest.fixture(scope="session")
def used(tmp_path_factory) -> Path:
    """Return a directory that a dev has used before, because later starts are faster."""
    data_dir = tmp_path_factory.mktemp("dev") / "data"
    one = Dev(data_dir)
    (data_dir.parent / "facts.json").write_text(json.dumps(one.facts))
    one.end()
    return data_dir
