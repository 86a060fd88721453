"""A read model equals what its projector makes of the log when replayed."""

import psycopg
import pytest

from service.app.bootstrap import Service
from service.ledger.following.runner import Subscription
from service.ledger.sql import queries
from tests.document_store import documents_on
from tests.projections.history import TABLES, History, number_all
from tests.world import settings_for

EVERYTHING = "select * from {}"
LOG = (
    "select l.position, e.append_id, e.originator_id, e.originator_version, e.topic, e.state"
    " from {0}.log as l join {0}.events as e using (append_id) order by l.position"
)
BEHIND = queries("service.ledger.following").subscription_behind


@pytest.mark.parametrize("events_at_once", [10**6, 1], ids=["all at once", "one by one"])
async def test_replaying_the_log_makes_the_same_rows(
    documents, database_url, scratch_url, tmp_path, events_at_once
):
    """After a random history each table made from the log equals the live one."""
    world = documents.world
    history = History(documents, seed=20260301)
    await history.run(250)
    await history.checked()
    async with Service(settings_for(scratch_url, tmp_path)).opened() as scratch:
        for source, target in zip(world.service.ledgers, scratch.ledgers, strict=True):
            await number_all(source)
            catch_up = world.service.catch_up[source.name]
            for projection in catch_up:
                # The service's own follower may be at it too.
                while await source.database.reads.fetchrow(BEHIND, projection.name):
                    await Subscription(source, projection).step()
            await _replay(source, target, [one.projector for one in catch_up], events_at_once)
    live, replayed = _rows(database_url), _rows(scratch_url)
    assert all(live[table] for table in TABLES)
    for table in TABLES:
        assert replayed[table] == live[table], table


@pytest.fixture
async def documents(database_url, tmp_path, store_credentials):
    """Return a running service with a document store."""
    async with documents_on(database_url, tmp_path, store_credentials) as one:
        yield one


@pytest.fixture
def scratch_url(database_url, template):
    """Return the owner's URL of a second, migrated and empty database."""
    name = database_url.rpartition("/")[2] + "_scratch"
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(f"create database {name} template {template}")
        yield database_url + "_scratch"
        owner.execute(f"drop database {name} with (force)")


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


def _rows(url):
    with psycopg.connect(url) as owner:
        return {
            table: sorted(map(str, owner.execute(EVERYTHING.format(table)).fetchall()))
            for table in TABLES
        }
