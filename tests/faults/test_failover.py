"""The primary dies, and a lagging replica takes over under a running service."""

import asyncio

from tests.faults.clusters import Installation, check_log, followed, gone_on, settled
from tests.faults.retried import until_created

NOT_RECEIVING = "not exists (select from pg_stat_wal_receiver)"


async def test_a_failover_to_a_lagging_replica(clusters, smtp, tmp_path):
    """No restart is needed; the loss is noticed, and a new lineage records it."""
    source = clusters.migrated("source", max_wal_senders="4")
    source.admit_superuser()
    await asyncio.to_thread(source.base_backup, tmp_path / "base", "--write-recovery-conf")
    replica = clusters.from_base_backup("replica", tmp_path / "base", source)
    installation = Installation(tmp_path, smtp[1])
    async with installation.on(source, replica) as world:
        partner, entity_id = await world.connected()
        kept = await partner.claim(entity_id, "kept")
        older = await world.service.checkpoints("live").make()
        await settled(source.url)
        await followed(source, replica)
        replica.execute(
            *("alter system set primary_conninfo = ''", "select pg_reload_conf()"), superuser=True
        )
        replica.until(NOT_RECEIVING)
        lost = await partner.claim(entity_id, "lost")
        beyond = await world.service.checkpoints("live").make()
        source.server.shutdown_abruptly()
        assert (await partner.claim(entity_id, "meanwhile")).status_code == 503
        replica.execute("select pg_promote()", superuser=True)
        again = await until_created(partner, entity_id, "kept")
        assert (again.status_code, again.json()["claim_id"]) == (200, kept.json()["claim_id"])
        await gone_on(installation, replica, world, older, beyond)
        anew = await until_created(partner, entity_id, "lost")
        assert (lost.status_code, anew.status_code) == (201, 201)
        await settled(replica.url)
    check_log(replica.url, "live")
