"""How PostgreSQL's errors are shown to partners."""

import asyncpg
import psycopg
import pytest
from psycopg import sql

from service.ledger.database import AlreadyExists, Database, LedgerUnavailable
from tests.databases import login_url
from tests.patience import PATIENCE_SECONDS

AWAY = [
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.PostgresIOError,
    asyncpg.InvalidPasswordError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionResetError,
    TimeoutError,
]
POOL_SIZE = 2
FAULTS_OF_OURS = [asyncpg.UndefinedTableError, asyncpg.CheckViolationError, ZeroDivisionError]


@pytest.fixture
async def database(module_database_url):
    """Return the adapter of the live ledger on a database used by this test alone."""
    one = Database(
        login_url(module_database_url, "live"),
        "live",
        pool_size=POOL_SIZE,
        deadline=PATIENCE_SECONDS,
    )
    await one.open()
    yield one
    await one.close()


@pytest.mark.parametrize("error", AWAY)
async def test_temporary_errors_are_unavailable(database, error):
    """Disk full, a standby, a lost connection, another password: a retry may succeed."""
    for _ in range(3 * POOL_SIZE):  # each would be missed from the pool
        with pytest.raises(LedgerUnavailable, match=error.__name__):
            async with database.writes.connection():
                raise error("x")
    async with database.writes.connection() as connection:
        assert await connection.fetchval("select 1") == 1


@pytest.mark.parametrize("error", FAULTS_OF_OURS)
async def test_a_fault_of_ours_is_not_called_an_outage(database, error):
    """A wrong statement fails on every retry: 500, not 503."""
    with pytest.raises(error):
        async with database.writes.connection():
            raise error("x")


async def test_a_value_that_no_column_can_hold_is_a_fault_of_ours(database):
    """An argument that the driver refuses is no outage."""
    with pytest.raises(asyncpg.DataError, match="invalid input"):
        async with database.writes.connection() as connection:
            await connection.fetchval("select $1::bigint", 2**70)


async def test_a_unique_violation_names_its_constraint(database):
    """The error names the constraint."""
    with pytest.raises(AlreadyExists, match="public_ids_pkey"):
        async with database.writes.connection() as connection:
            await connection.execute("insert into live.public_ids values ('x'), ('x')")


async def test_a_read_only_database_answers_503_to_writes_and_still_reads(world, database_url):
    """During a failover a standby lists claims and refuses to create them."""
    partner, entity_id = await world.connected()
    await _set_read_only(world, database_url, "on")
    refused = await partner.claim(entity_id)
    listed = await partner.call("GET", "/claims", params={"entity_id": entity_id})
    assert (refused.status_code, refused.json()["code"]) == (503, "service_unavailable")
    assert int(refused.headers["Retry-After"]) >= 1
    assert listed.status_code == 200
    await _set_read_only(world, database_url, "off")
    assert (await partner.claim(entity_id)).status_code == 201


async def test_a_full_disk_answers_503(world, monkeypatch):
    """An append on a full disk is answered 503 and leaves nothing behind."""
    partner, entity_id = await world.connected()
    fetchrow = asyncpg.Connection.fetchrow
    with monkeypatch.context() as patch:

        async def full(connection, statement, *args):
            if "live.write(" in statement:
                raise asyncpg.DiskFullError("could not extend file")
            return await fetchrow(connection, statement, *args)

        patch.setattr(asyncpg.Connection, "fetchrow", full)
        refused = await partner.claim(entity_id)
    assert (refused.status_code, refused.json()["code"]) == (503, "service_unavailable")
    assert (await partner.claim(entity_id)).status_code == 201


async def _set_read_only(world, database_url, value):
    """Make the database read-only, and let the pool reconnect as after a failover."""
    name = database_url.rpartition("/")[2]
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("set default_transaction_read_only = off")
        owner.execute(
            sql.SQL("alter database {} set default_transaction_read_only = {}").format(
                sql.Identifier(name), sql.Literal(value)
            )
        )
    for ledger in world.service.ledgers:
        for pool in ledger.database.pools.values():
            pool.pool.retire()
