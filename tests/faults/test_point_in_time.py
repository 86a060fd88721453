"""A base backup and the write-ahead log: back to a moment, and what was lost behind it."""

import asyncio

import pytest

from service.audit.log_tree import LedgerForked
from tests.faults.clusters import (
    Cluster,
    Installation,
    check_log,
    check_verified,
    clusters_in,
    folder_for_all,
    onboard,
    outbox_empty,
    received,
    settled,
)
from tests.mail.mail_server import MailServer
from tests.world import PATIENCE_SECONDS, Partner

CLAIMS = 20
NOW = "select clock_timestamp()::text"
BUSY = "450 4.2.1 try again later"


@pytest.fixture
def clusters(request, tmp_path):
    """Make clusters of this test's own."""
    with clusters_in(tmp_path, request.config.getoption("--postgres")) as made:
        yield made


@pytest.fixture
async def smtp():
    """Answer a mail server and its port."""
    server = MailServer()
    yield server, await server.start()
    await server.stop()


@pytest.fixture
def archive():
    """Answer the folder of the archived write-ahead log."""
    with folder_for_all() as folder:
        yield folder


@pytest.fixture
def source(clusters, archive) -> Cluster:
    """Answer a cluster that archives its write-ahead log."""
    command = f"test ! -f {archive}/%f && cp %p {archive}/%f"
    cluster = clusters.migrated("source", archive_mode="on", archive_command=command)
    cluster.admit_superuser()
    return cluster


def base_backup(source, folder):
    """Take a base backup while the service runs."""
    source.run(
        *("pg_basebackup", "--dbname", source.superuser_url, "--pgdata", folder),
        *("--checkpoint", "fast", "--wal-method", "none", "--no-password"),
    )


async def archived(source, archive):
    """Wait until the archive has all that was written so far."""
    segment = source.value("select pg_walfile_name(pg_current_wal_lsn())")
    source.execute("select pg_switch_wal()", superuser=True)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (archive / str(segment)).exists():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)


def back_to(moment, clusters, source, archive, base):
    """Answer a cluster restored to a moment; the old one is gone by then."""
    source.server.stop()
    return clusters.from_base_backup(
        *("target", base, source),
        restore_command=f"cp {archive}/%f %p",
        recovery_target_time=moment,
        recovery_target_action="promote",
    )


async def test_back_to_a_moment(clusters, source, archive, smtp, tmp_path):
    """What was committed by then is there, and nothing later; mail sent since is not sent again."""
    mails, port = smtp
    installation = Installation(tmp_path, port)
    async with installation.on(source) as world:
        partner = await world.partner()
        entity_id = await partner.connected_entity()
        await onboard(partner, "before-the-backup")
        await received(mails, 1)
        await asyncio.to_thread(base_backup, source, tmp_path / "base")
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
    assert len(mails.received) == 2


async def test_what_was_lost_is_noticed_and_gone_on_from(clusters, source, archive, smtp, tmp_path):
    """A published checkpoint tells; a new lineage, and older evidence holds where it can."""
    installation = Installation(tmp_path, smtp[1])
    async with installation.on(source) as world:
        partner = await world.partner()
        entity_id = await partner.connected_entity()
        await asyncio.to_thread(base_backup, source, tmp_path / "base")
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

    async def told(*arguments):
        return await asyncio.to_thread(installation.command, target, *arguments)

    async with installation.on(target) as world:
        with pytest.raises(LedgerForked):
            await world.service.checkpoints("live").make()
        partner = Partner(world, partner.partner_id, partner.keys)
        assert (await partner.claim(entity_id, "meanwhile")).status_code == 201
        assert (await told("audit", "checkpoint"))[0] == 1
        code, verdict = await told("audit", "verify", "--ledger", "live")
        assert (code, verdict["ok"]) == (1, False)
        code, answer = await told("audit", "lineage", "--reason", "restored after a disk failure")
        (begun,) = answer["lineages"]
        assert (code, begun["ledger"]) == (0, "live")
        assert (begun["shared_size"], begun["previous_size"]) == (shared, beyond.checkpoint.size)
        assert (await told("audit", "checkpoint"))[0] == 0
        code, verdict = await told("audit", "verify")
        assert (code, verdict["ok"]) == (0, True)
        for name, made, expected in (("older", older, 0), ("beyond", beyond, 1)):
            note = tmp_path / f"{name}.txt"
            note.write_text(made.note)
            code, verdict = await told("audit", "verify", "--ledger", "live", "--checkpoint", note)
            assert (name, code, verdict["ok"]) == (name, expected, not expected)
        await check_verified(world.service)
    assert check_log(target.url, "live") > shared
