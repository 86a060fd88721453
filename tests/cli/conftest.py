"""One running `claim-ledger dev` per module, and the team's commands on it."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.team import Team
from tests.dev_process import Dev, environment, run
from tests.small_disk import small_disk
from tests.world import MASTER_KEY, PUBLIC_URL

__all__ = ["as_named", "demo", "small_disk", "team"]


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


@pytest.fixture
def as_named(database_url) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a command on an empty installation, `--as` somebody or nobody."""
    env = environment(DATABASE_URL=database_url, MASTER_KEYS=MASTER_KEY, PUBLIC_URL=PUBLIC_URL)

    def command(
        *arguments: str, as_json: bool = True, **given: str
    ) -> subprocess.CompletedProcess[str]:
        json = ["--json"] if as_json else []
        return run(*arguments, *json, env=env | environment(**given))

    return command
