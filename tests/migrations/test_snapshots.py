"""The snapshots of the schemas are what the migrations make of an empty database."""

from migrations.snapshots import snapshot_of
from service.facts.caller import LEDGERS
from tests.migrations.snapshots import made
from tests.tables import every_row


async def test_a_migrated_database_equals_the_snapshots(database_url):
    """On any version of PostgreSQL; `just generate` writes them anew."""
    found = await made(database_url)
    with every_row() as row:
        for ledger in LEDGERS:
            with row(ledger):
                differing = sorted(snapshot_of(ledger) ^ found[ledger])
                assert not differing, "migrations make another schema: run `just generate`"
