"""The yardsticks keep running the service's statements when those change."""

import asyncio

import pytest

from tests.bench.bare import RESPONSE, BareServer
from tests.bench.pgbench import payload, run_pgbench, script
from tests.world import settings_for, world_on


@pytest.fixture
async def unnumbered(database_url, tmp_path):
    """Return a world in which nothing is numbered, and so nothing set aside for its MAC."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as one:
        yield one


ADDED = """
select
    (select count(*) from live.claim_list),
    (select count(*) from live.data_keys where master_key_id = '0123456789abcdef'),
    (
        select count(*) from live.claim_list
        join live.events
        on originator_id = stream_id and topic in ('ClaimCreated', 'FirstMessagePosted')
    )
"""


class Written:
    """Keeps what is written to it, as a transport."""

    def __init__(self) -> None:
        self.responses: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Keep a response."""
        self.responses.append(data)


async def test_yardsticks_run_the_statements_of_post_claims(unnumbered, database_url, tmp_path):
    """Each transaction adds what one claim adds: two events, a data key and a list row."""
    world = unnumbered
    partner = await world.partner()
    await partner.claim(await partner.connected_entity(), message="Unpaid.")
    file = tmp_path / "claims.pgbench"
    file.write_text(script())
    given = payload(database_url) | {"partners": "1"}
    rate, _ = await asyncio.to_thread(run_pgbench, database_url, file, given, 2, 1)
    ledger = world.service.modes["live"].ledger
    async with ledger.database.writes.connection() as connection:
        claims, keyed, posted = await connection.fetchrow(ADDED)

        transport = Written()
        server = BareServer(script(), given, database_url)
        for _ in range(2):
            await server.answer(transport)
        await server.close()
        more = tuple(await connection.fetchrow(ADDED))

    assert rate > 0
    assert claims > 1
    assert keyed == claims - 1
    assert posted == 2 * claims
    assert transport.responses == [RESPONSE] * 2
    assert more == (claims + 2, keyed + 2, posted + 4)
