"""What a login or a database would give a session of ours does not change what statements mean."""

import pytest

from service.ledger.database import Database
from service.ledger.rebuild.connecting import OF_REBUILD, connected
from service.ledger.session import SESSION
from service.ledger.sql import Sql
from service.ledger.transaction import NotAppended
from tests.databases import login_url
from tests.patience import PATIENCE_SECONDS
from tests.tables import every_row
from tests.world import STAFF, settings_for, world_on

GIVEN = Sql("", "", "select current_setting($1::text) as setting")
OTHERS = {
    "search_path": "evil, pg_catalog",
    "row_security": "on",
    "default_transaction_isolation": "'repeatable read'",
    "synchronous_commit": "off",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
}
POLICY = """
create policy p on live.claim_list to claim_ledger_live using (false);
alter table live.claim_list enable row level security
"""
SWALLOW = """
create function public.swallow() returns trigger language plpgsql as $$begin return null; end$$;
create trigger z before insert on live.events for each row
when (new.topic in ('FirstMessagePosted', 'ClaimStageChanged')) execute function public.swallow()
"""


async def test_no_setting_of_a_login_or_database_is_taken_over(database_url, owner):
    """Neither by requests and background work, nor by a rebuild."""
    name = database_url.rpartition("/")[2]
    owner.execute("create schema evil")
    for setting, value in OTHERS.items():
        for whose in (f"database {name}", f"role claim_ledger_live in database {name}"):
            owner.execute(f"alter {whose} set {setting} = {value}")
    database = Database(
        login_url(database_url, "live"), "live", pool_size=1, deadline=PATIENCE_SECONDS
    )
    await database.open()
    with every_row() as row:
        for setting, expected in SESSION.items():
            with row(setting):
                for pool in database.pools.values():
                    found = await pool.fetchrow(GIVEN, setting)
                    assert found is not None
                    assert found["setting"] == expected
                async with connected(database_url) as connection:
                    found = await connection.fetchval(GIVEN.text, setting)
                    assert found == OF_REBUILD[setting]
    await database.close()


async def test_a_policy_hides_nothing_unseen(database_url, owner, tmp_path):
    """The list is refused instead of being shown without a claim."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        assert (await partner.claim(entity_id)).status_code == 201
        owner.execute(POLICY)
        listed = await partner.call("GET", f"/claims?entity_id={entity_id}")
        assert (listed.status_code, listed.json()["code"]) == (503, "service_unavailable")


async def test_nothing_is_acknowledged_that_was_not_appended(database_url, owner, tmp_path):
    """A trigger of somebody else's drops events, and the function that writes them does not say."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        claim_id = (await partner.claim(entity_id)).json()["claim_id"]
        owner.execute(SWALLOW)
        claimed = await partner.claim(entity_id, "case-2", message="The invoice is unpaid.")
        assert (claimed.status_code, claimed.json()["code"]) == (503, "service_unavailable")
        with pytest.raises(NotAppended):
            await world.service.modes["live"].claims.move(claim_id, "negotiation", STAFF)
