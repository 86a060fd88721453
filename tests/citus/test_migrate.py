"""A release's `migrate` where the ledgers have had nodes of their own since a release before."""

from pathlib import Path

import pytest
from alembic import command

import migrations
from migrations.logins import logins_of
from tests.citus.cluster import HOMES, citus_in
from tests.databases import login_url, migrated
from tests.faults.clusters import check_log, check_verified, settled
from tests.world import settings_for, world_on

pytestmark = pytest.mark.server

BEFORE = "0017"
"""Those after it add columns, make an index concurrently, drop a constraint, replace functions and
take rights back."""


def _migrated_to_before(url: str) -> None:
    config = migrations.configured(url)
    logins = logins_of({ledger: login_url(url, ledger) for ledger in HOMES})
    config.attributes["logins"] = logins
    command.upgrade(config, BEFORE)


async def test_ledgers_with_nodes_of_their_own_are_migrated(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Every node has the new schema then, and a claim goes all the way."""
    bin_dir = request.config.getoption("--citus")
    if not bin_dir:
        pytest.skip("no build of Citus is given: `just test-citus PG_BIN`")
    with citus_in(Path(bin_dir), _migrated_to_before) as citus:
        migrated(citus.url)
        for ledger in ("live", "test"):
            citus.run("functions.sql", ledger)
        settings = settings_for(citus.url, tmp_path, **citus.urls)
        async with world_on(settings, tmp_path) as world:
            partner, entity_id = await world.connected()
            answers = [await partner.claim(entity_id) for _ in range(2)]
            assert [one.status_code for one in answers] == [201, 200]
            await settled(citus.url)
            for ledger in HOMES:
                check_log(citus.url, ledger)
            await check_verified(world.service)
