"""A worker that is killed again and again under load: nothing is missing at the receiver.

A few kills here; `just webhook-kills` makes five hundred.
"""

import asyncio
import os
import random
import sys
from collections import defaultdict

import pytest

from service.app.background import background
from service.app.bootstrap import Service
from service.facts.claims import STAGES, ClaimCreated, ClaimStageChanged, claim_stream
from service.ledger.sql import Sql
from service.ledger.writing import Append
from service.mail.transport import mail_transport
from service.webhooks.deliveries import Deliveries
from tests.ledger.samples import CAUSE
from tests.patience import PATIENCE_SECONDS, eventually
from tests.webhooks.killed_workers import LEASE_SECONDS, local_settings
from tests.webhooks.receiver import OK, receiving

pytestmark = [pytest.mark.server, pytest.mark.timeout(3600)]
KILLS = int(os.environ.get("WEBHOOK_KILLS", "3"))
BATCH = 5
AHEAD_MAX = 100
"""Events that may wait, so that deliveries go on through all kills."""
_ENDS = Sql(
    "ends",
    "The partner's last event, and how many it has.",
    "select coalesce(max(position), 0) as last, count(*) as events"
    " from ledger.partner_events where partner_id = $1",
)


async def claims_until(over, ledger, partner_id, receiver):
    """Create claims, and move them later, until it is over; return how many events that made."""
    written, numbers, known = 0, 0, []
    while not over():
        if written - len({one.id for one in receiver.requests}) > AHEAD_MAX:
            await asyncio.sleep(0.01)
            continue
        appends = []
        for _ in range(BATCH):
            numbers += 1
            claim_id = f"clm_{numbers}"
            stream = claim_stream("live", 0, partner_id, "ent_1", claim_id)
            created = ClaimCreated(claim_id, partner_id, "ent_1", claim_id, "fingerprint")
            appends.append(Append(stream, 0, [created], CAUSE))
            known.append((stream, claim_id))
        stream, claim_id = known.pop(random.randrange(len(known) - BATCH or 1))  # noqa: S311 - any will do
        if len(known) > BATCH:
            moves = [ClaimStageChanged(claim_id=claim_id, stage=one) for one in STAGES[1:4]]
            appends.append(Append(stream, 1, moves, CAUSE))
        async with ledger.transaction() as transaction:
            await transaction.append(*appends)
        written += sum(len(one.events) for one in appends)
    return written


async def test_a_worker_killed_while_it_delivers_loses_nothing(database_url, tmp_path, monkeypatch):
    """Each event arrives, in its claim's order; what comes twice has the same id and body."""
    monkeypatch.setattr(Deliveries, "lease_seconds", LEASE_SECONDS)
    settings = local_settings(database_url, tmp_path)
    service = Service(settings, deadline_seconds=PATIENCE_SECONDS)
    async with service.opened(), receiving() as receiver:
        partner_id = await service.partners.add("Partner", "partner@example.com", CAUSE)
        await service.partners.approve(partner_id, CAUSE)
        endpoint_id = service.endpoints.new_endpoint_id()
        await service.endpoints.add(partner_id, endpoint_id, "live", receiver.url, [], CAUSE)
        live = service.modes["live"].ledger
        killing = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.webhooks.killed_workers"),
            *(database_url, str(tmp_path), str(KILLS)),
            stderr=asyncio.subprocess.PIPE,
        )
        killed = asyncio.create_task(killing.communicate())
        written = await claims_until(killed.done, live, partner_id, receiver)
        assert killing.returncode == 0, (await killed)[1].decode()[-2000:]
        during = len(receiver.requests)
        followers = background(service, mail_transport(settings.smtp_url))
        followers.start()

        async def all_came():
            row = await live.database.reads.fetchrow(_ENDS, partner_id)
            return row["events"] == written == len({one.id for one in receiver.requests})

        await eventually(all_came, lambda: f"{written} events, {len(receiver.requests)} requests")
        await followers.stop()
    check(receiver, written)
    if KILLS >= 100:  # a few may meet nothing
        repeats = len(receiver.requests) - written
        print(f"{KILLS} kills, {written} events, {during} requests meanwhile, {repeats} repeats")  # noqa: T201 - `just webhook-kills` shows it
        assert repeats > 0


def check(receiver, written):
    """Compare what came with what was written."""
    bodies, order = defaultdict(set), defaultdict(list)
    for one in receiver.requests:
        if one.id not in bodies:
            order[one.event["subject"]].append(int(one.event["sequence"]))
        bodies[one.id].add(one.body)
    assert len(bodies) == written
    assert {len(found) for found in bodies.values()} == {1}
    assert len({one.event["sequence"] for one in receiver.requests}) == written
    assert all(found == sorted(found) for found in order.values())
    assert receiver.answer is OK
