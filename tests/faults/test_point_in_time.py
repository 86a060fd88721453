"""Point-in-time recovery from a base backup and the write-ahead log, and what it loses."""

import asyncio

import pytest

from tests.faults.clusters import (
    Cluster,
    Installation,
    check_log,
    check_verified,
    folder_for_all,
    gone_on,
    links_received,
    onboard,
    outbox_empty,
    received,
    settled,
)
from tests.patience import eventually
from tests.world import Partner

CLAIMS = 20
NOW = "select clock_timestamp()::text"
WITHOUT_LOG = ("--wal-method", "none")
BUSY = "450 4.2.1 try again later"


@pytest.fixture
def archive():
    """Return the folder of the archived write-ahead log."""
    with folder_for_all() as folder:
        yield folder


@pytest.fixture
def source(clusters, archive) -> Cluster:
    """Return a cluster that archives its write-ahead log."""
    command = f"test ! -f {archive}/%f && cp %p {archive}/%f"
    cluster = clusters.migrated("source", archive_mode="on", archive_command=command)
    cluster.admit_superuser()
    return cluster


async def archived(source, archive):
    """Wait until the archive has everything written so far."""
    segment = source.value("select pg_walfile_name(pg_current_wal_lsn())")
    source.execute("select pg_switch_wal()", superuser=True)
    await eventually((archive / str(segment)).exists)


def back_to(moment, clusters, source, archive, base):
    """Return a cluster restored to a moment; the old one has been stopped."""
    source.server.stop()
    (base / "recovery.signal").touch()
    target = clusters.from_base_backup(
        *("target", base, source),
        restore_command=f"cp {archive}/%f %p",
        recovery_target_time=moment,
        recovery_target_action="promote",
    )
    target.until("not pg_is_in_recovery()")
    return target


async def test_recovery_restores_a_moment(clusters, source, archive, smtp, tmp_path):
    """It has what was committed by then; mail sent since is not sent again."""
    mails, port = smtp
    installation = Installation(tmp_path, port)
    async with installation.on(source) as world:
        partner, entity_id = await world.connected()
        await onboard(partner, "before-the-backup")
        await received(mails, 1)
        await asyncio.to_thread(source.base_backup, tmp_path / "base", *WITHOUT_LOG)
        mails.on_data = BUSY
        await onboard(partner, "while-mail-waits")
        kept = [await partner.claim(entity_id, f"kept-{n}") for n in range(CLAIMS)]
        await settled(source.url)
        moment = str(source.value(NOW))
        lost = [await partner.claim(entity_id, f"lost-{n}") for n in range(CLAIMS)]
        mails.on_data = None
        await received(mails, 2)
        await outbox_empty(source)
        await archived(source, archive)
    target = back_to(moment, clusters, source, archive, tmp_path / "base")
    size = check_log(target.url, "live")
    assert target.value("select count(*) from live.claim_list") == CLAIMS
    assert target.value("select count(*) from live.mail_outbox where state = 'waiting'") == 1
    async with installation.on(target) as world:
        partner = Partner(world, partner.partner_id, partner.keys)
        again = [await partner.claim(entity_id, f"kept-{n}") for n in range(CLAIMS)]
        anew = [await partner.claim(entity_id, f"lost-{n}") for n in range(CLAIMS)]
        await outbox_empty(target)
        await settled(target.url)
        await check_verified(world.service)
    assert [one.json()["claim_id"] for one in again] == [one.json()["claim_id"] for one in kept]
    assert {one.status_code for one in lost + anew} == {201}
    assert check_log(target.url, "live") >= size + CLAIMS
    assert links_received(mails) == 2


async def test_what_was_lost_is_noticed_and_gone_on_from(clusters, source, archive, smtp, tmp_path):
    """A published checkpoint reveals the loss; a lineage records it; old evidence holds."""
    installation = Installation(tmp_path, smtp[1])
    async with installation.on(source) as world:
        partner, entity_id = await world.connected()
        await asyncio.to_thread(source.base_backup, tmp_path / "base", *WITHOUT_LOG)
        await partner.claim(entity_id, "kept")
        older = await world.service.checkpoints("live").make()
        await settled(source.url)
        moment = str(source.value(NOW))
        await partner.claim(entity_id, "lost")
        beyond = await world.service.checkpoints("live").make()
        await archived(source, archive)
    target = back_to(moment, clusters, source, archive, tmp_path / "base")
    shared = check_log(target.url, "live")
    assert older.checkpoint.size <= shared < beyond.checkpoint.size

    async with installation.on(target) as world:
        partner = Partner(world, partner.partner_id, partner.keys)
        await gone_on(installation, target, world, older, beyond)
        assert (await partner.claim(entity_id, "afterwards")).status_code == 201
        await settled(target.url)
    assert check_log(target.url, "live") > shared
