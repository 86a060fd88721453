"""One running `claim-ledger dev` for these modules, and the team's commands on it."""

import subprocess
from collections.abc import Callable, Generator
from typing import Any

import pytest

from tests.cli.team import Team
from tests.dev_process import Dev, environment, run
from tests.small_disk import small_disk
from tests.world import MASTER_KEY, PUBLIC_URL

__all__ = ["as_named", "demo", "small_disk", "team"]


_teams: list[Team] = []


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Team:
    """Return the team of a dev that modules share as long as they follow each other."""
    if not _teams:
        _teams.append(Team(Dev(tmp_path_factory.mktemp("cli") / "data")))
    return _teams[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """End the dev before tests of another folder: until its end, it polls, a second a minute."""
    yield
    if nextitem is None or nextitem.path.parent != item.path.parent:
        while _teams:
            _teams.pop().end()


@pytest.fixture(scope="module")
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
