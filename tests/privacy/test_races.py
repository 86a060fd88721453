"""Erasing concurrently with writes: each write sees the erasure or is erased."""

import asyncio
import random

import psycopg
import pytest
from psycopg.errors import LockNotAvailable

from projections.connections.reader import access
from service.core.errors import Refusal
from service.entities.commands import business_locks
from service.facts.entities import EntityRegistered
from service.onboardings.commands import PURPOSE
from service.privacy import erasures
from tests.patience import PATIENCE_SECONDS, eventually
from tests.privacy.links import CANARY, labelled_link
from tests.world import STAFF

pytestmark = pytest.mark.followed

WAITING = (
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
)
STAGES = ("negotiation", "proceedings", "judgment", "settled")


async def test_a_claim_that_moves_meanwhile_is_erased(privacy):
    """Moves and the erasure conflict on the stream, and both succeed."""
    partner = await privacy.documents.world.partner()
    made = await partner.claim(await partner.connected_entity())
    claim_id = made.json()["claim_id"]
    live = privacy.service.modes["live"].claims
    moves = [live.move(claim_id, stage, STAFF) for stage in STAGES]
    done, *moved = await asyncio.gather(privacy.erase_claim(claim_id), *moves)
    shown = await live.show(claim_id)
    assert (done.erased.is_new, shown.erased, shown.created.details) == (True, True, None)
    assert len(moved) == len(STAGES)
    assert shown.version == 2 + len(STAGES)


async def test_concurrent_erasures_append_one_event(privacy, database_url):
    """Both return the same result."""
    partner = await privacy.documents.world.partner()
    made = await partner.claim(await partner.connected_entity())
    claim_id = made.json()["claim_id"]
    done = await asyncio.gather(*(privacy.erase_claim(claim_id, f"case {nr}") for nr in range(4)))
    with psycopg.connect(database_url) as owner:
        (events,) = owner.execute(
            "select count(*) from live.events where topic = 'PersonalDataErased'"
        ).fetchone()
    assert events == 1
    assert sorted(one.erased.is_new for one in done) == [False, False, False, True]
    assert len({one.erased.reason for one in done}) == 1


async def test_claims_created_during_an_erasure(privacy, database_url):
    """Claims before the entity's erasure in the log are erased with it."""
    draw = random.Random(20260301)  # noqa: S311 - a seed, so that a failure comes again
    partner = await privacy.documents.world.partner()
    for number in range(6):
        entity_id = await partner.connected_entity()

        async def later(entity_id=entity_id):
            await asyncio.sleep(draw.random() / 50)
            return await privacy.erase_entity(entity_id, with_claims=True)

        answers = await asyncio.gather(
            later(), *(partner.claim(entity_id, f"{number}-{nr}") for nr in range(12))
        )
        assert {one.status_code for one in answers[1:]} == {201}
    with psycopg.connect(database_url) as owner:
        left = owner.execute(
            "select c.claim_id from live.claim_list as c"
            " join live.entities as n using (entity_id)"
            " join live.events as erased on erased.originator_id = n.stream_id"
            "  and erased.topic = 'PersonalDataErased' and c.append_id < erased.append_id"
            " join live.data_keys as k on k.key_id = c.stream_id"
        ).fetchall()
    assert left == []


async def test_a_registration_during_an_erasure(privacy):
    """The address is taken or free: never two businesses with it, never a crash."""
    live = privacy.service.modes["live"].entities
    for _ in range(8):
        entity_id = await live.add("Canary", CANARY, "CN 1", STAFF)

        async def second():
            try:
                return await live.add("Canary", CANARY, "CN 1", STAFF)
            except Refusal as refusal:
                return refusal.code

        _, outcome = await asyncio.gather(privacy.erase_entity(entity_id), second())
        assert outcome == "onboarding_unavailable" or outcome.startswith("ent_")
        if outcome.startswith("ent_"):
            with pytest.raises(Refusal):
                await live.add("Canary", CANARY, "CN 1", STAFF)
            await privacy.erase_entity(outcome)


async def test_an_erasure_waits_for_a_registration_of_the_same_business(
    privacy, owner, monkeypatch
):
    """And no rebuild swaps a table meanwhile whose copies it has cleared."""
    monkeypatch.setattr(erasures, "HELD_MILLISECONDS", int(1000 * PATIENCE_SECONDS))
    live = privacy.service.modes["live"]
    entity_id = await live.entities.add("Canary", CANARY, None, STAFF)
    email_hash = (await privacy.service.secrets.get()).lookup_email(CANARY)
    known_by = EntityRegistered(entity_id=entity_id, established=True, email_hash=email_hash)
    async with live.ledger.transaction() as registering:
        await registering.lock(*business_locks(known_by))
        erasing = asyncio.create_task(privacy.erase_entity(entity_id))
        await eventually(lambda: erasing.done() or owner.execute(WAITING).fetchall())
        assert not erasing.done()
        with owner.transaction(), pytest.raises(LockNotAvailable):
            owner.execute("lock table live.entities in share mode nowait")
    assert (await erasing).erased.is_new


async def test_replays_during_an_erasure_are_200(privacy):
    """Before, during and after it, whatever the body."""
    partner, entity_id = await privacy.documents.world.connected()
    claim_id = (await partner.claim(entity_id)).json()["claim_id"]
    replays = [partner.claim(entity_id, partner_user_id=f"u-{number}") for number in range(20)]
    _, *answers = await asyncio.gather(privacy.erase_claim(claim_id), *replays)
    assert {(one.status_code, one.json()["claim_id"]) for one in answers} == {(200, claim_id)}


async def test_an_erasure_waits_for_mail_being_sent(privacy, database_url):
    """The sender holds the mail's row, and the erasure ends after it is settled."""
    partner = await privacy.documents.world.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": CANARY}
    started = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    row = await privacy.service.modes["live"].onboarding_list.by_id(started)
    async with await psycopg.AsyncConnection.connect(database_url) as sending:
        await sending.execute(
            "insert into live.mail_outbox (message_id, stream_id, noted_at, next_attempt_at)"
            " values (%s, %s, now(), now() + interval '1 day') on conflict (message_id) do update"
            " set state = 'waiting', next_attempt_at = excluded.next_attempt_at",
            [started, row["stream_id"]],
        )
        await sending.commit()
        await sending.execute(
            "select 1 from live.mail_outbox where message_id = %s for update", [started]
        )
        erasing = asyncio.create_task(privacy.erase_entity(row["entity_id"]))
        done, _ = await asyncio.wait([erasing], timeout=0.5)
        assert not done
        await sending.execute("update live.mail_outbox set state = 'sent'")
        await sending.commit()
    erased = await erasing
    assert (erased.erased.is_new, erased.erased.mail) == (True, 0)


async def test_an_onboarding_finished_during_an_erasure(privacy):
    """It finishes first, or the link is void; the entity is erased either way."""
    live = privacy.service.modes["live"]
    secrets = await privacy.service.secrets.get()
    partner = await privacy.documents.world.partner()
    for number in range(8):
        body = {
            "partner_user_id": f"u-{number}",
            "company_name": "New",
            "user_email": f"{number}{CANARY}",
        }
        started = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
        row = await live.onboarding_list.by_id(started)
        token = secrets.link_token(PURPOSE, started)

        async def finish(token=token):
            try:
                return (await live.onboardings.complete(token, "req_1"))[0]
            except Refusal as refusal:
                return refusal.code

        erased, outcome = await asyncio.gather(privacy.erase_entity(row["entity_id"]), finish())
        access = await live.connection_list.access(partner.partner_id, row["entity_id"])
        assert (erased.erased.is_new, access.name) == (True, "[erased]")
        assert outcome in {started, "magic_link_invalid"}
        assert access.connected is (outcome == started)


async def test_a_link_that_is_followed_while_the_entity_is_erased(privacy, monkeypatch):
    """The link was looked up before the erasure and is void afterwards."""
    live = privacy.service.modes["live"]
    partner = await privacy.documents.world.partner()
    body = {"partner_user_id": "u", "company_name": "New", "user_email": CANARY}
    started = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    row = await live.onboarding_list.by_id(started)
    await privacy.erase_entity(row["entity_id"])

    async def looked_up_before(_token_hash):
        return row

    monkeypatch.setattr(live.onboarding_list, "by_link", looked_up_before)
    token = (await privacy.service.secrets.get()).link_token(PURPOSE, started)
    with pytest.raises(Refusal, match="magic_link_invalid"):
        await live.onboardings.complete(token, "req_1")


async def test_a_link_that_is_redeemed_while_the_entity_is_erased(privacy, monkeypatch):
    """The erasure waits for the approval and erases the link's label too."""
    live = privacy.service.modes["live"]
    partner = await privacy.documents.world.partner()
    entity_id = await live.entities.add("Canary", CANARY, "CN 1", STAFF)
    looked, begin_lineage = asyncio.Event(), asyncio.Event()

    async def looks_and_waits(*args):
        found = await access(*args)
        looked.set()
        await begin_lineage.wait()
        return found

    monkeypatch.setattr("service.connections.commands.access", looks_and_waits)
    token = await labelled_link(partner)
    approving = asyncio.create_task(live.connections.approve(token, entity_id, STAFF))
    await looked.wait()
    erasing = asyncio.create_task(privacy.erase_entity(entity_id))
    done, _ = await asyncio.wait([erasing], timeout=0.5)
    begin_lineage.set()
    assert not done
    assert (await approving, (await erasing).erased.keys) == (partner.partner_id, 2)
    assert await privacy.found(CANARY) == []


async def test_a_link_that_is_redeemed_after_the_entity_was_erased(privacy):
    """It is refused, connected before or not, and the link stays unused."""
    live = privacy.service.modes["live"]
    before, other = [await privacy.documents.world.partner() for _ in range(2)]
    entity_id = await before.connected_entity()
    await privacy.erase_entity(entity_id)
    for partner in (before, other):
        token = await labelled_link(partner)
        for _ in range(2):
            with pytest.raises(Refusal, match="entity_not_found"):
                await live.connections.approve(token, entity_id, STAFF)
    assert (await live.connection_list.access(before.partner_id, entity_id)).connected


async def test_a_rebuild_that_drops_its_table_meanwhile(privacy, database_url):
    """The erasure goes on if a table disappears before it is cleared."""
    entity_id = await privacy.service.modes["live"].entities.add("Canary", CANARY, None, STAFF)
    async with await psycopg.AsyncConnection.connect(database_url) as rebuild:
        await rebuild.execute("create schema live_next")
        await rebuild.execute("create table live_next.entities (like live.entities)")
        await rebuild.execute("grant usage on schema live_next to public")
        await rebuild.execute("grant all on live_next.entities to public")
        await rebuild.commit()
        await rebuild.execute("drop table live_next.entities")
        erasing = asyncio.create_task(privacy.erase_entity(entity_id))
        done, _ = await asyncio.wait([erasing], timeout=0.5)
        assert not done
        await rebuild.commit()
    assert (await erasing).erased.is_new
