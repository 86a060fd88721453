"""What a superuser of PostgreSQL changes in its own catalogs is compared, too."""

import pytest

from service.evidence.verify.definitions import definitions_fault
from service.ledger.database import Database
from tests.databases import login_url
from tests.patience import PATIENCE_SECONDS

OVERLOOKED = """
set allow_system_table_mods = on;
create function public.f() returns trigger language plpgsql as $$begin return null; end$$;
create trigger z before insert on accounts.events for each row execute function public.f();
update pg_trigger set tgisinternal = true where tgname = 'z';
"""
UNREFERENCED = """
set allow_system_table_mods = on;
update pg_trigger set tgenabled = 'D'
where tgisinternal and tgrelid = 'accounts.checkpoint_signatures'::regclass
"""


@pytest.fixture
async def accounts(clusters):
    """Return a migrated cluster of this test's own, and its ledger of accounts."""
    cluster = clusters.migrated("one")
    cluster.admit_superuser()
    url = login_url(cluster.url, "accounts")
    database = Database(url, "accounts", pool_size=1, deadline=PATIENCE_SECONDS)
    await database.open()
    yield cluster, database
    await database.close()


async def test_no_trigger_is_overlooked(accounts):
    """Neither one that is called internal, nor a foreign key's own that is off."""
    cluster, database = accounts
    assert await definitions_fault(database) is None
    for change, said in (
        (OVERLOOKED, "accounts.events has this trigger, which no migration made:"),
        (UNREFERENCED, "accounts.checkpoint_signatures has this trigger, which no migration made:"),
    ):
        cluster.execute(change, superuser=True)
        fault = await definitions_fault(database)
        assert fault is not None
        assert said in fault.sentence
