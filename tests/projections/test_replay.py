"""A read model equals what its projector makes of the log when replayed."""

import pytest

from service.app.bootstrap import Service
from service.ledger.following.runner import Subscription
from service.ledger.sql import queries
from tests.databases import cloned, rows_of
from tests.patience import PATIENCE_SECONDS
from tests.projections.history import TABLES, History, number_all
from tests.world import settings_for

pytestmark = [
    pytest.mark.followed,
    pytest.mark.any_postgres(
        "test_rebuild makes such a history, and compares its rows with what is made of the log"
    ),
]

LOG = (
    "select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state"
    " from {0}.log as l join {0}.events as e using (append_id) order by l.position"
)
BEHIND = queries("service.ledger.following").subscription_behind


async def test_replaying_the_log_makes_the_same_rows(
    documents, database_url, scratch_urls, tmp_path
):
    """After a random history each table made from the log equals the live one.

    It does whether the events are projected all at once or one by one.
    """
    history = History(documents, seed=20260301)
    await history.run(250)
    await history.checked()
    for events_at_once, scratch_url in zip((10**6, 1), scratch_urls, strict=True):
        await _replay_all(documents.world, scratch_url, tmp_path, events_at_once)
    live = rows_of(database_url, TABLES)
    assert all(live[table] for table in TABLES)
    for scratch_url in scratch_urls:
        replayed = rows_of(scratch_url, TABLES)
        for table in TABLES:
            assert replayed[table] == live[table], (table, scratch_url)


async def _replay_all(world, scratch_url, mail_dir, events_at_once):
    async with Service(
        settings_for(scratch_url, mail_dir), deadline_seconds=PATIENCE_SECONDS
    ).opened() as scratch:
        for source, target in zip(world.service.ledgers, scratch.ledgers, strict=True):
            await number_all(source)
            catch_up = world.service.catch_up[source.name]
            for projection in catch_up:
                # The service's own follower may be at it too.
                while await source.database.reads.fetchrow(BEHIND, projection.name):
                    await Subscription(source, projection).step()
            await _replay(source, target, [one.projector for one in catch_up], events_at_once)


@pytest.fixture
def scratch_urls(postgres_url, template):
    """Return the owner's URLs of two more databases, migrated and empty."""
    with cloned(postgres_url, template) as one, cloned(postgres_url, template) as another:
        yield one, another


async def _replay(source, target, catch_up, events_at_once):
    async with source.transaction() as transaction:
        rows = await transaction.connection.fetch(LOG.format(source.name))
        assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
        events = await transaction.decode(rows)
    for start in range(0, len(events), events_at_once):
        async with target.transaction(background=30) as transaction:
            await transaction.write(
                write
                for projector in (*target.projectors, *catch_up)
                for recorded in events[start : start + events_at_once]
                for write in projector.project(recorded)
            )
