"""What a rebuild waits for, and what waits for a rebuild, ends by the server's own limits."""

import asyncio
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from service.ledger.database import LedgerUnavailable
from service.ledger.rebuild import connecting, swap
from service.ledger.rebuild.refused import RebuildRefused
from service.ledger.rebuild.session import clear_left_over, rebuild_session
from tests.patience import eventually
from tests.projections.rebuilding import model, quiet, rebuild, verify
from tests.tables import every_row

pytestmark = pytest.mark.followed

LIMITS = (
    "select current_setting('lock_timeout'), current_setting('statement_timeout'),"
    " current_setting('idle_in_transaction_session_timeout'),"
    " current_setting('client_connection_check_interval')"
)
HELD = {
    "an earlier rebuild's table, by a dump": "live_next.left_over in access share mode",
    "the live table, by a migration": "live.claim_list in access exclusive mode",
}
LEFT_OVER = "create schema if not exists live_next; create table live_next.left_over ()"


async def test_a_rebuilds_sessions_have_limits_but_none_for_statements(database_url, owner):
    """Whatever the login's own is: an index that takes hours is not cut off."""
    name = urlsplit(database_url).path[1:]
    owner.execute(f'alter database "{name}" set statement_timeout = 1')
    async with rebuild_session(database_url, "live") as shop:
        connections = shop._connections  # noqa: SLF001 - the sessions themselves
        found = [tuple(await one.fetchrow(LIMITS)) for one in connections]
    assert found == [("10s", "0", "1min", "1s")] * 2


@pytest.mark.usefixtures("claims")
async def test_a_rebuild_waits_for_no_lock_for_long(world, owner, database_url, monkeypatch):
    """It is refused, says what may hold the table, and has changed nothing."""
    monkeypatch.setitem(connecting.OF_REBUILD, "lock_timeout", "100ms")  # less than 10 s
    claim_list = model(world, "claim_list")
    with every_row() as row:
        for name, held in HELD.items():
            owner.execute(LEFT_OVER)
            with row(name), psycopg.connect(database_url) as other:
                other.execute(f"lock table {held}")
                with pytest.raises(RebuildRefused, match="in use for too long"):
                    await rebuild(database_url, claim_list)
            owner.execute("drop table if exists live_next.left_over")
    assert (await verify(database_url, claim_list)).total == 0


async def test_what_a_rebuild_left_is_not_waited_for_either(owner, database_url, monkeypatch):
    """`projections status` drops it, unless somebody reads it."""
    monkeypatch.setattr("service.ledger.limits.BACKGROUND_LOCK_SECONDS", 0.1)
    owner.execute(LEFT_OVER)
    with psycopg.connect(database_url) as other:
        other.execute("lock table live_next.left_over in access share mode")
        with pytest.raises(asyncpg.LockNotAvailableError):
            await clear_left_over(database_url, "live")
    await clear_left_over(database_url, "live")
    assert owner.execute("select to_regclass('live_next.left_over')").fetchone() == (None,)


async def test_a_rebuild_that_is_cancelled_as_a_transaction_begins_drops_its_tables(
    owner, database_url
):
    """The server is in that transaction then, and the drops must not end with it."""

    async def cancelled():
        async with rebuild_session(database_url, "live") as shop:
            owner.execute(LEFT_OVER)
            await shop._connections[1].execute("begin")  # noqa: SLF001 - nobody got the answer
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await cancelled()
    assert owner.execute("select to_regclass('live_next.left_over')").fetchone() == (None,)


async def test_a_rebuild_whose_connections_were_closed_says_that_postgresql_is_away(
    world, owner, database_url
):
    """As after a restart: no bug of ours."""

    async def closed():
        async with rebuild_session(database_url, "live") as shop:
            for one in shop._connections:  # noqa: SLF001 - the sessions themselves
                owner.execute("select pg_terminate_backend(%s)", [one.get_server_pid()])
                await eventually(one.is_closed)
            await shop.rebuild(model(world, "claim_list"), quiet, if_equal=False)

    with pytest.raises(LedgerUnavailable):
        await closed()


async def test_a_swap_that_stands_still_lets_go_of_the_tables(
    world, claims, database_url, monkeypatch
):
    """Where a process stops while everybody waits for its locks, the server ends its session."""
    partner, entity_id, _ = claims
    stands = asyncio.Event()

    async def stand(_builder):
        stands.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(swap, "_exchange", stand)
    monkeypatch.setattr(swap, "_LIMITS", "set local idle_in_transaction_session_timeout = '100ms'")
    rebuilding = asyncio.create_task(rebuild(database_url, model(world, "claim_list")))
    await stands.wait()
    answer = await eventually(lambda: _claimed(partner, entity_id))
    assert answer == 201
    rebuilding.cancel()
    await asyncio.gather(rebuilding, return_exceptions=True)
    monkeypatch.undo()
    assert (await verify(database_url, model(world, "claim_list"))).total == 0


@pytest.mark.usefixtures("claims")
async def test_a_swap_with_a_statement_that_takes_too_long_is_tried_again(
    world, database_url, monkeypatch
):
    """While others wait it may not take longer; the next try may succeed."""
    exchange, tries = swap._exchange, []  # noqa: SLF001 - a statement that hangs, once

    async def hang_once(builder):
        tries.append(await builder.writer.fetchval("show statement_timeout"))
        if len(tries) == 1:
            await builder.writer.execute("set local statement_timeout = '100ms'")
            await builder.writer.execute("select pg_sleep(3600)")
        await exchange(builder)

    monkeypatch.setattr(swap, "_exchange", hang_once)
    rebuilt = await rebuild(database_url, model(world, "claim_list"))
    assert (tries, rebuilt.swapped is not None) == (["10s", "10s"], True)


async def _claimed(partner, entity_id):
    answer = await partner.claim(entity_id, "beside")
    return answer.status_code in {200, 201} and 201
