"""A logical replica takes over, as in an upgrade to another major version: the runbook's page."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from service.cli.dev.postgres import debian_bin_dir
from tests import runbook
from tests.databases import migrated
from tests.faults.clusters import (
    Cluster,
    Clusters,
    check_log,
    check_verified,
    clusters_in,
    folder_for_all,
    settled,
)
from tests.migrated_clusters import MigratedClusters
from tests.patience import eventually
from tests.world import Partner, settings_for, world_on

pytestmark = pytest.mark.server
ROLES = runbook.block("sql", "create role claim_ledger_accounts")
AHEAD = runbook.block("sql", "select coalesce(max(append_id), 0) <=")
COPIED = "select bool_and(srsubstate = 'r') from pg_subscription_rel"
REPLAYED = "select pg_wal_lsn_diff('{}', latest_end_lsn) <= 0 from pg_stat_subscription"


@pytest.mark.timeout(600)
async def test_a_logical_replica_takes_over():
    """Rows are all there, sequences are not; after `migrate` claims go on behind the others."""
    with folder_for_all() as home, _clusters_in(home) as clusters:
        source = clusters.migrated("source", wal_level="logical")
        target = _replica(clusters, source, home / "schema.sql")
        async with world_on(settings_for(source.url, home), home) as world:
            partner, entity_id = await world.connected()
            made = [await partner.claim(entity_id, f"case-{n}") for n in range(5)]
            await settled(source.url)
        await _followed(source, target)
        target.execute("drop subscription drill", superuser=True)
        assert not _are_ahead(target)
        migrated(target.url)
        assert _are_ahead(target)
        async with world_on(settings_for(target.url, home), home) as world:
            partner = Partner(world, partner.partner_id, partner.keys)
            again = [await partner.claim(entity_id, f"case-{n}") for n in range(5)]
            assert (await partner.claim(entity_id, "after")).status_code == 201
            listed = await partner.call("GET", f"/claims?entity_id={entity_id}")
            await settled(target.url)
            await check_verified(world.service)
        assert [one.json()["claim_id"] for one in again] == [one.json()["claim_id"] for one in made]
        names = [one["partner_claim_id"] for one in listed.json()["claims"]]
        assert names == ["after", *(f"case-{n}" for n in reversed(range(5)))]
        check_log(target.url, "live")


def _clusters_in(home: Path) -> AbstractContextManager[Clusters]:
    return clusters_in(home, MigratedClusters(home, debian_bin_dir()))


def _replica(clusters: Clusters, source: Cluster, schema: Path) -> Cluster:
    """Return a cluster with the source's schema, which follows its rows."""
    target = clusters.new("target")
    for cluster in (source, target):
        cluster.admit_superuser()
    source.execute("create publication drill for all tables", superuser=True)
    source.run("pg_dump", "--schema-only", "--no-publications", "-f", schema, source.url)
    target.execute(ROLES)
    target.run("psql", "--no-psqlrc", "-qv", "ON_ERROR_STOP=1", "-f", schema, target.url)
    following = f"connection '{source.superuser_url}' publication drill"
    target.execute(f"create subscription drill {following}", superuser=True)
    return target


async def _followed(source: Cluster, target: Cluster) -> None:
    """Wait until the target has copied and replayed all that the source has written."""
    await eventually(lambda: target.value(COPIED, superuser=True), look=0.1)
    written = source.value("select pg_current_wal_lsn()::text")
    replayed = REPLAYED.format(written)
    await eventually(lambda: target.value(replayed, superuser=True), look=0.1)


def _are_ahead(cluster: Cluster) -> bool:
    return all(cluster.value(one) for one in AHEAD.split(";") if one.strip())
