"""Dates that only PostgreSQL has are read by every connection, and others as they are."""

from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest

from service.ledger.dates import FIRST_DATE, LAST_DATE
from service.ledger.rebuild.connecting import connected
from tests.contract.refusals import refused

BEYOND = {
    "4713-01-01 BC": FIRST_DATE,
    "-infinity": FIRST_DATE,
    "0001-01-01 00:00+00": FIRST_DATE,
    "9999-12-31 23:59:59.999999+00": LAST_DATE,
    "20000-01-01": LAST_DATE,
    "infinity": LAST_DATE,
}
AS_THEY_ARE = (
    FIRST_DATE + timedelta(microseconds=1),
    datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(2026, 2, 28, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    LAST_DATE - timedelta(microseconds=1),
)


async def looked(connection):
    """Read every date, by itself and in an array."""
    for text, date in BEYOND.items():
        one = f"select '{text}'::timestamptz, array['{text}'::timestamptz, null]"
        assert tuple(await connection.fetchrow(one)) == (date, [date, None]), text
    both = "select $1::timestamptz, $2::timestamptz[]"
    for date in AS_THEY_ARE:
        found = await connection.fetchrow(both, date, [date, None])
        assert tuple(found) == (date, [date, None])
        assert found[0].tzinfo is UTC
    told = await connection.fetchval("select $1::timestamptz at time zone 'UTC' = $2", *SAME)
    assert told


SAME = (AS_THEY_ARE[3], datetime(2026, 2, 28, 6, 30, 0, 1))  # noqa: DTZ001 - a timestamp without


async def test_every_connection_reads_every_date(world, database_url):
    """Of the pools, behind a deadline or not, and of a rebuild."""
    database = world.service.modes["live"].ledger.database
    for pool in database.pools.values():
        async with pool.connection() as connection:
            await looked(connection)
    async with connected(database_url) as connection:
        await looked(connection)


async def test_a_moment_without_an_offset_is_refused(world):
    """PostgreSQL would take it for one of this machine's."""
    async with world.service.accounts.database.reads.connection() as connection:
        with pytest.raises(asyncpg.DataError):
            await connection.fetch("select $1::timestamptz", SAME[1])


ALTER = (
    "update live.connections set connected_at = %s",
    "update live.claim_list set created_at = %s",
    "update live.entities set registered_at = %s",
    "update accounts.partners set applied_at = %s",
    "update accounts.api_keys set issued_at = %s",
)


@pytest.mark.parametrize("date", BEYOND)
async def test_an_altered_date_stops_no_answer(world, owner, date):
    """Rows with such a date are listed, and the requests that read them are answered."""
    partner, entity_id = await world.connected()
    await partner.claim(entity_id)
    for statement in ALTER:
        owner.execute(statement, (date,))
    listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
    assert [one["entity_id"] for one in listed.json()["claims"]] == [entity_id]
    service = world.service
    (connection,) = await service.modes["live"].connection_list.connections(entity_id)
    (known,) = await service.partner_list.partners(partner.partner_id)
    assert {connection["connected_at"], known["applied_at"]} == {BEYOND[date]}
    assert len(await service.partner_list.keys(partner.partner_id)) == 2
    refused(await partner.claim("ent_none"), "entity_not_found")
