"""A replay reads the log page by page, the next one ahead, and can be cut off at any time."""

import asyncio
from contextlib import aclosing

import pytest

from service.evidence.replay import pages as replay_pages
from service.evidence.replay.log_fault import LogFault
from service.evidence.replay.pages import pages
from service.evidence.replay.state import replayed
from service.ledger import decoding
from service.ledger.sequencer import Sequencer
from tests.faults.clusters import folder_for_all
from tests.patience import eventually
from tests.pgbouncer import logins, pooler
from tests.world import STAFF, service_on, settings_for

SIZE = 7
TEMPORARY = "select count(*) from pg_class where relpersistence = 't' and relkind = 'r'"


@pytest.fixture
async def numbered(service, add):
    """Return the accounts' ledger, which has SIZE events."""
    await add(SIZE)
    await Sequencer(service.accounts).number_committed()
    return service.accounts


@pytest.fixture
def paged(monkeypatch):
    """Return a function that sets how many positions and bytes a page has at most."""

    def at_most(positions: int, size: int = decoding.PAGE_BYTES_MAX) -> None:
        monkeypatch.setattr(replay_pages, "BATCH", positions)
        monkeypatch.setattr(replay_pages, "PAGE_BYTES_MAX", size)
        monkeypatch.setattr(decoding, "PAGE_BYTES_MAX", size)

    return at_most


@pytest.fixture
def pooled(database_url):
    """Return each ledger's URL through a pooler with two server connections per role."""
    with (
        folder_for_all() as folder,  # PgBouncer runs as nobody
        logins(database_url) as made,
        pooler(database_url, made, folder, default_pool_size=2) as urls,
    ):
        yield urls


async def partners(ledger, advance=lambda _steps: None):
    """Return the partners of a replay of all events."""
    async with replayed(ledger, SIZE, advance) as state:
        return [row["partner_id"] async for row in state.rows("partners")]


@pytest.mark.parametrize("positions", [1, 2, 3, SIZE, 100])
@pytest.mark.parametrize("size", [1, 1000, decoding.PAGE_BYTES_MAX])
async def test_pages_follow_without_gap_or_repetition(numbered, paged, positions, size):
    """However many positions and bytes they have; progress ends at the position."""
    paged(positions, size)
    found, advanced = list[int](), list[int]()
    async with aclosing(pages(numbered.database, SIZE - 1)) as log:
        async for page in log:
            rows = [row["position"] for row in page.rows]
            assert rows == list(range(page.start + 1, page.end + 1))
            assert len(rows) <= positions
            found += rows
    assert found == list(range(1, SIZE))
    assert len(await partners(numbered, advanced.append)) == SIZE
    assert sum(advanced) == SIZE


@pytest.mark.parametrize("size", [1, decoding.PAGE_BYTES_MAX])
async def test_a_position_that_the_log_has_twice_is_found(numbered, paged, attack, owner, size):
    """Also where a page ends with it."""
    paged(100, size)
    owner.execute("alter table accounts.log drop constraint log_pkey")
    attack("update accounts.log set position = 3 where position = 4")
    with pytest.raises(LogFault, match="position 3: the log has it more than once"):
        await partners(numbered)


async def test_a_fault_ends_a_replay_while_the_next_page_is_read(numbered, paged, attack):
    """The message is that of the fault, and the ledger answers as before."""
    paged(1)
    attack("update accounts.log set position = 1000 where position = 2")
    for _ in range(5):  # more than there are connections
        with pytest.raises(LogFault, match="position 2: the log has no such event"):
            await partners(numbered)
    attack("update accounts.log set position = 2 where position = 1000")
    assert len(await partners(numbered)) == SIZE


async def test_a_replay_that_was_cut_off_leaves_nothing_behind(numbered, paged, owner):
    """Its tables go, and started again it shows everything."""
    paged(1)
    everything = await partners(numbered)
    for at in range(1, SIZE):
        passed, reached = 0, asyncio.Event()

        def advance(steps, at=at, reached=reached):
            nonlocal passed
            passed += steps
            if passed == at:
                reached.set()

        cut_off = asyncio.create_task(partners(numbered, advance))
        await reached.wait()
        cut_off.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut_off
    await eventually(lambda: owner.execute(TEMPORARY).fetchone() == (0,))
    assert await partners(numbered) == everything


async def test_two_places_of_a_transaction_pooler_are_enough(pooled, database_url, tmp_path, paged):
    """One for the tables, and one for the log: every page is read."""
    paged(2)
    settings = settings_for(database_url, tmp_path, **pooled)
    async with service_on(settings) as service:
        for _ in range(SIZE):
            await service.partners.add("A partner", "a@example.com", STAFF)
        await Sequencer(service.accounts).number_committed()
        assert len(await partners(service.accounts)) == SIZE
