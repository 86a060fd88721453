"""Sequencers that compete and die, and idle workers."""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psycopg

from service.app.background import background
from service.app.bootstrap import Service
from service.evidence.note import NoteKey
from service.evidence.verify import slices
from service.facts.catalogue import ACCOUNTS
from service.ledger.database import LedgerError
from service.ledger.sequencer import Sequencer
from service.ledger.writing import Append
from service.mail.transport import mail_transport
from tests.databases import login_url
from tests.faults.clusters import check_log, settled
from tests.ledger.samples import CAUSE, plain
from tests.patience import PATIENCE_SECONDS, eventually
from tests.processes import bound
from tests.world import MASTER_KEY, settings_for

KILLS_EACH = 50
MID_BATCH = 25
"""Of all the deaths; else they met nothing worth meeting."""
APPENDERS = 6
WAITING_MAX = 300
"""Appenders wait while so many events do, so that a batch can be done within a life."""
IDLE_SECONDS = 4.0
"""Several of the longest pauses of every follower, and of a checkpoint's interval."""
ROOT = Path(__file__).parents[2]
APPROVED = plain(ACCOUNTS["PartnerApproved"])
SIGNED = "select max(c.size) = max(h.size) from accounts.checkpoints as c, accounts.head as h"
XMAX = "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


async def test_three_sequencers_killed_fifty_times_each(service, database_url):
    """SIGKILL at random, also inside batches: no gap or duplicate, streams in order."""
    killing = asyncio.create_task(_kill_sequencers(database_url))
    appended = await asyncio.gather(
        *(_append_until(killing, service.accounts) for _ in range(APPENDERS))
    )
    killed = await killing
    assert min(killed["kills"]) >= KILLS_EACH
    assert killed["mid_batch"] >= MID_BATCH
    with psycopg.connect(database_url) as owner:
        numbered_meanwhile = owner.execute("select size from accounts.head").fetchone()[0]
        assert numbered_meanwhile >= sum(appended) - WAITING_MAX - APPENDERS
        assert numbered_meanwhile > WAITING_MAX
    await _number_the_rest(service.accounts)
    check_log(database_url, "accounts", size=sum(appended))


async def test_an_idle_worker_draws_no_transaction_ids(migrated_clusters, tmp_path, monkeypatch):
    """While nothing happens, all followers of all ledgers only read."""
    monkeypatch.setattr(slices, "FIRST_SECONDS", 3600.0)  # what verifies the log notes its place
    quiet = {"autovacuum": "off"}  # whatever draws an id is ours then
    with migrated_clusters.server(tmp_path / "postgres", settings=quiet, durable=False) as server:
        settings = settings_for(
            server.url,
            tmp_path / "mail",
            CHECKPOINT_KEYS=NoteKey.generate("example.com/ledger").private_text,
            CHECKPOINT_INTERVAL_SECONDS="1",
            ARCHIVE_URL=(tmp_path / "published").as_uri(),
        )
        service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
        async with service.opened():
            followers = background(service, mail_transport(settings.smtp_url))
            followers.start()
            await service.partners.add("A partner", "partner@example.com", CAUSE)
            with psycopg.connect(server.url, autocommit=True) as owner:
                await settled(server.url)
                await eventually(lambda: owner.execute(SIGNED).fetchone() == (True,))
                before = await _settled(owner)
                await asyncio.sleep(IDLE_SECONDS)
                after = owner.execute(XMAX).fetchone()[0]
            await followers.stop()
    assert after == before


async def _kill_sequencers(url):
    command = [sys.executable, "-m", "tests.faults.killed_sequencers"]
    command += [login_url(url, "accounts"), "accounts", MASTER_KEY]
    process = await asyncio.create_subprocess_exec(
        *bound([*command, str(KILLS_EACH), str(MID_BATCH)], signal.SIGKILL),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, said) == (0, b"")
    return json.loads(output)


async def _append_until(killing, ledger):
    """Append to a stream, one event per transaction; return how many there were."""
    stream, version = uuid4(), 0
    sequencer = Sequencer(ledger)
    while not killing.done():
        if (await sequencer.lag()).waiting >= WAITING_MAX:
            await asyncio.sleep(0.02)
            continue
        async with ledger.transaction() as transaction:
            await transaction.append(Append(stream, version, [APPROVED], CAUSE))
        version += 1
    return version


async def _number_the_rest(ledger):
    """Number the rest; a dead sequencer's backend may still hold the row for a moment."""
    sequencer = Sequencer(ledger)

    async def numbered():
        with suppress(LedgerError):
            await sequencer.step()
        return not (await sequencer.lag()).waiting

    await eventually(numbered)


async def _settled(owner, seconds=1.5):
    """Return the next transaction id once none has been drawn for a while."""

    async def quiet():
        before = owner.execute(XMAX).fetchone()[0]
        await asyncio.sleep(seconds)
        return before if owner.execute(XMAX).fetchone()[0] == before else None

    return await eventually(quiet)
