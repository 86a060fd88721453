"""A database whose sequences were left behind, as logical replication leaves them."""

import psycopg
import pytest

from tests.databases import migrated
from tests.world import settings_for, world_on

pytestmark = pytest.mark.server
_SKIP = "select max(nextval('live.events_append_id_seq')) from generate_series(1, 5)"
_BEHIND = "select setval('live.events_append_id_seq', {})"
_NEWEST = "select max(append_id) from live.events"
_LISTED = "select array_agg(partner_claim_id order by append_id) from live.claim_list"


async def test_migrating_advances_sequences_that_are_behind(database_url, tmp_path):
    """Later claims are listed after all that are there, and not in a gap between them."""
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        partner, entity_id = await world.connected()
        with psycopg.connect(database_url, autocommit=True) as owner:

            def value(query):
                ((found,),) = owner.execute(query).fetchall()
                return found

            before_gap = value(_NEWEST)
            value(_SKIP)  # what a transaction that was rolled back has drawn
            assert (await partner.claim(entity_id, "before")).status_code == 201
            newest = value(_NEWEST)
            value(_BEHIND.format(before_gap))
            migrated(database_url)
            assert (await partner.claim(entity_id, "after")).status_code == 201
            assert value(_LISTED) == ["before", "after"]
            assert value(_NEWEST) == newest + 1
            migrated(database_url)
            assert value("select last_value from live.events_append_id_seq") == newest + 1
