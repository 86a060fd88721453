"""One running `claim-ledger dev` per module, and the team's commands on it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.team import Team
from tests.dev_process import Dev


@pytest.fixture(scope="session")
def team(tmp_path_factory) -> Iterator[Team]:
    """Return the team of a dev that belongs to this test process."""
    dev = Dev(tmp_path_factory.mktemp("cli") / "data")
    yield Team(dev)
    dev.end()


@pytest.fixture(scope="session")
def demo(team) -> dict[str, Any]:
    """Return the facts about the demonstration data."""
    return team.dev.facts
