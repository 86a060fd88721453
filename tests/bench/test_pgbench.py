"""The yardstick keeps running the service's statements when those change."""

import asyncio

import pytest

from tests.bench.pgbench import payload, run_pgbench, script
from tests.world import settings_for, world_on


@pytest.fixture
async def unnumbered(database_url, tmp_path):
    """Return a world in which nothing is numbered, and so nothing set aside for its MAC."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as one:
        yield one


async def test_pgbench_runs_the_statements_of_post_claims(unnumbered, database_url, tmp_path):
    """Each transaction adds what one claim adds: two events, a data key and a list row."""
    world = unnumbered
    partner = await world.partner()
    await partner.claim(await partner.connected_entity(), message="Unpaid.")
    file = tmp_path / "claims.pgbench"
    file.write_text(script())
    given = payload(database_url) | {"partners": "1"}
    rate, _ = await asyncio.to_thread(run_pgbench, database_url, file, given, 2, 1)
    async with world.service.modes["live"].ledger.database.writes.connection() as connection:
        claims, keyed, posted = await connection.fetchrow(
            "select (select count(*) from live.claim_list), (select count(*) from live.data_keys"
            " where master_key_id = '0123456789abcdef'), (select count(*) from live.claim_list"
            " join live.events on originator_id = stream_id"
            " and topic in ('ClaimCreated', 'FirstMessagePosted'))"
        )

    assert rate > 0
    assert claims > 1
    assert keyed == claims - 1
    assert posted == 2 * claims
