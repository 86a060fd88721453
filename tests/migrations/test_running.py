"""Revisions are applied beside a service that runs: short locks, one transaction each, in parts."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from service.ledger.limits import DEADLINE_SECONDS, Limits
from tests.databases import login_url
from tests.migrations.revisions import Revisions
from tests.patience import until

WAITS = (
    "select count(*) from pg_stat_activity where datname = current_database()"
    " and wait_event_type = 'Lock'"
)
VERSION = "select version_num from public.alembic_version"


@pytest.fixture
def revisions(database_url: str, tmp_path: Path) -> Revisions:
    """Return a directory of revisions for the test's database."""
    return Revisions(database_url, tmp_path)


def numbers(owner: psycopg.Connection, query: str) -> list[object]:
    """Return the first column."""
    return [row[0] for row in owner.execute(query.encode()).fetchall()]


def test_a_locked_table_is_tried_again_and_others_pass(database_url, owner, revisions):
    """While a transaction keeps the table, requests queue for a moment at most; then it goes on."""
    revisions.add(run="alter table ledger.uploads add column more text;")
    reader = psycopg.connect(login_url(database_url, "live"), autocommit=True)
    keeper = psycopg.connect(database_url)
    with ThreadPoolExecutor(1) as pool, reader, keeper:
        keeper.execute("select from live.uploads")
        migrating = pool.submit(revisions.upgrade)
        for _ in range(2):
            until(lambda: numbers(owner, WAITS) == [1] or migrating.done())
            assert not migrating.done(), migrating.exception()
            reader.execute("select from live.uploads")  # queues behind the migrator, and passes
            until(lambda: numbers(owner, WAITS) == [0])
        keeper.rollback()
        migrating.result()
    owner.execute("select more from live.uploads")


def test_each_revision_is_a_transaction(owner, revisions):
    """One that fails takes none with it that came before, and is the next one to be applied."""
    (before,) = numbers(owner, VERSION)
    revisions.add(
        run="create table ledger.locks as select setting::int as ms from pg_settings"
        " where name = 'lock_timeout';"
    )
    revisions.add(run="create table ledger.made (id int);\nselect 1 / 0;")
    with pytest.raises(DBAPIError, match="division by zero"):
        revisions.upgrade()
    (reached,) = numbers(owner, VERSION)
    assert int(str(reached)) == int(str(before)) + 1
    assert numbers(owner, "select to_regclass('live.made')") == [None]
    (waited,) = numbers(owner, "select ms from live.locks")
    assert (
        0 < int(str(waited)) < 500 * Limits.of_requests(DEADLINE_SECONDS).lock
    )  # half of a request's


def test_a_table_is_changed_in_batches(owner, revisions):
    """Each in a transaction of its own, and nothing is left out."""
    owner.execute("create table live.many as select id, null::int as more from"
                  " generate_series(1, 50) as id")  # fmt: skip
    revisions.add(
        run_in_batches="""
        with batch as (
            select id from ledger.many where id > %(after)s order by id limit 20
        ), changed as (
            update ledger.many as m set more = m.id from batch as b where m.id = b.id
        )
        select max(id) from batch
        """
    )
    revisions.upgrade()
    batches = "select count(*) from live.many where more = id group by xmin::text order by min(id)"
    assert numbers(owner, batches) == [20, 20, 10]


def test_an_index_is_made_beside_writers(database_url, owner, revisions):
    """A transaction that has written the table goes on writing; a half made one is made anew."""
    owner.execute("insert into live.public_ids values ('a'), ('b')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        owner.execute("create unique index concurrently made on live.public_ids ((1))")
    revisions.add(
        run_concurrently="-- why; and why not\n"
        "create index concurrently if not exists made on ledger.public_ids (length(public_id));"
    )
    writer = psycopg.connect(database_url)
    with ThreadPoolExecutor(1) as pool, writer:
        writer.execute("insert into live.public_ids values ('c')")
        migrating = pool.submit(revisions.upgrade)
        until(lambda: numbers(owner, WAITS) == [1] or migrating.done())
        assert not migrating.done(), migrating.exception()
        writer.execute("insert into live.public_ids values ('d')")
        writer.commit()
        migrating.result()
    made = "select indexdef from pg_indexes where schemaname = 'live' and indexname = 'made'"
    assert "length" in str(numbers(owner, made))
    assert numbers(owner, "select bool_and(indisvalid) from pg_index") == [True]
