"""A running dev and the packed clients, which these tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.npm import TYPESCRIPT, run
from tests.dev_process import Dev


@pytest.fixture(scope="session")
def dev(tmp_path_factory) -> Iterator[Dev]:
    """Return a running dev, which every client's test writes to."""
    one = Dev(tmp_path_factory.mktemp("clients") / ".claim-ledger")
    yield one
    one.end()


@pytest.fixture(scope="session")
def typescript() -> Path:
    """Return the folder of the TypeScript client, with the tools of its lock file."""
    locked, installed = TYPESCRIPT / "package-lock.json", TYPESCRIPT / "node_modules"
    stamp = installed / ".package-lock.json"
    if not stamp.exists() or stamp.stat().st_mtime < locked.stat().st_mtime:
        run(["npm", "ci"], TYPESCRIPT)
    return TYPESCRIPT


@pytest.fixture(scope="session")
def installed(typescript, tmp_path_factory) -> Path:
    """Return an empty folder into which the packed TypeScript client was installed."""
    folder = tmp_path_factory.mktemp("installed")
    run(["npm", "pack", "--pack-destination", folder], typescript)
    (package,) = folder.glob("*.tgz")
    run(["npm", "install", package], folder)
    return folder
