"""Plans do not depend on what the tables held when a session made them."""

import pytest

from service.ledger.sql import queries

SQL = queries("service.ledger")
FOLLOWING = {
    SQL.log_range: (0, 100, ["ClaimCreated"], 1000),
    SQL.data_keys: ([],),
}
"""What followers read each time, with arguments."""


@pytest.mark.parametrize("kind", ["reads", "writes", "background"])
async def test_a_new_installation_is_read_by_index(world, kind):
    """Its tables are empty when the first statements are planned, and grow for minutes."""
    pool = world.service.modes["live"].ledger.database.pools[kind]
    async with pool.connection() as connection:
        for sql, args in FOLLOWING.items():
            plan = await connection.fetch(f"explain {sql.on('live')}", *args)
            assert "Seq Scan" not in "\n".join(line for (line,) in plan)
