"""After an erasure the evidence holds, and a replay shows the marker instead of the data."""

import psycopg
import pytest

from service.app.bootstrap import Service
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import replayed
from service.evidence.replay.wanted import Wanted
from service.onboardings.commands import PURPOSE
from tests.databases import rows_of
from tests.patience import PATIENCE_SECONDS
from tests.world import settings_for

LEAVES = (
    "select l.leaf_hash, l.leaf_hash = live.leaf_hash(l.position, e.append_id, e.originator_id,"
    " e.originator_version, e.topic, e.state)"
    " from live.log as l join live.events as e using (append_id) order by l.position"
)
LOG = (
    "select e.append_id, e.originator_id, e.originator_version, e.topic, e.state"
    " from live.log as l join live.events as e using (append_id) order by l.position"
)
TABLES = (
    *("live.entities", "live.connections", "live.onboardings", "live.connect_links"),
    *("live.claim_list", "live.claim_documents"),
)
CANARY = "canary-Zoë"


async def history(privacy):
    """Create claims, documents, an onboarding and links; return (entities, claims)."""
    partner, entity_id, ref = await privacy.documents.uploading()
    claims = [
        await partner.claim(entity_id, document_refs=[ref], message=CANARY),
        await partner.claim(entity_id, "case-2", message=CANARY),
    ]
    body = {"partner_user_id": "u", "company_name": CANARY, "user_email": "zoe@example.com"}
    started = (await partner.call("POST", "/onboardings", json=body)).json()["onboarding_id"]
    token = (await privacy.service.secrets.get()).link_token(PURPOSE, started)
    _, finished, _ = await privacy.service.modes["live"].onboardings.complete(token, "req_1")
    return [entity_id, finished], [one.json()["claim_id"] for one in claims]


@pytest.fixture
def scratch_url(database_url, template):
    """Return the owner's URL of a second, migrated and empty database."""
    name = database_url.rpartition("/")[2] + "_scratch"
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(f"create database {name} template {template}")
        yield database_url + "_scratch"
        owner.execute(f"drop database {name} with (force)")


async def test_an_erasure_changes_no_hash(privacy, database_url):
    """Every earlier leaf is unchanged and still matches its event's columns."""
    entities, claims = await history(privacy)
    await privacy.number()
    with psycopg.connect(database_url) as owner:
        before = owner.execute(LEAVES).fetchall()
        await privacy.erase_entity(entities[0], with_claims=True)
        await privacy.number()
        after = owner.execute(LEAVES).fetchall()
    assert after[: len(before)] == before
    assert all(holds for _, holds in after)
    assert len(after) - len(before) == 1 + len(claims)


@pytest.mark.parametrize("at_once", [10**6, 1], ids=["all at once", "one by one"])
async def test_a_replay_without_the_keys_makes_the_same_rows(
    privacy, database_url, scratch_url, tmp_path, at_once
):
    """Projectors turn the log into exactly the live rows, markers included."""
    entities, claims = await history(privacy)
    for entity_id in entities:
        await privacy.erase_entity(entity_id)
    await privacy.erase_claim(claims[0])
    await privacy.number()
    live = privacy.service.modes["live"].ledger
    async with live.transaction() as transaction:
        events = await transaction.decode(
            [(0, *row) for row in await transaction.connection.fetch(LOG)]
        )
    async with Service(
        settings_for(scratch_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as scratch:
        target = scratch.modes["live"].ledger
        for start in range(0, len(events), at_once):
            async with target.transaction(background=30) as transaction:
                await transaction.write(
                    write
                    for projector in target.projectors
                    for recorded in events[start : start + at_once]
                    for write in projector.project(recorded)
                )
    kept, replayed = rows_of(database_url, TABLES), rows_of(scratch_url, TABLES)
    assert all(kept[table] for table in TABLES)
    assert replayed == kept
    assert sum("[erased]" in row for row in kept["live.entities"]) == len(entities)
    assert not any(CANARY in row for rows in kept.values() for row in rows)


async def test_a_replay_lists_erased_subjects(privacy):
    """As of the moment, with time and reason; by claim, entity or partner."""
    partner = await privacy.documents.world.partner()
    entity_id, other = [await partner.connected_entity() for _ in range(2)]
    claims = [(await partner.claim(entity_id, name)).json()["claim_id"] for name in "ab"]
    await privacy.number()
    ledger = privacy.service.modes["live"].ledger
    before = (await moment_of(ledger)).position
    await privacy.erase_claim(claims[0], "case 1")
    await privacy.erase_entity(entity_id, "case 2")
    await privacy.number()
    end = (await moment_of(ledger)).position
    told = [
        await erased(ledger, end, **wanted)
        for wanted in (
            {},
            {"claim_id": claims[0]},
            {"claim_id": claims[1]},
            {"entity_id": entity_id},
            {"entity_id": other},
            {"partner_id": partner.partner_id},
            {"partner_id": "ptn_x"},
        )
    ]
    both = [(claims[0], "case 1"), (entity_id, "case 2")]
    assert told == [both, both[:1], [], both, [], both, []]
    assert await erased(ledger, before) == []
    assert await erased(ledger, before + 1) == both[:1]


async def erased(ledger, position, **wanted):
    """Return the subjects that a replay lists as erased, with the reasons."""
    only = Wanted(**wanted)
    async with replayed(ledger, position, lambda _steps: None, wanted=only) as state:
        rows = [row async for row in state.rows("erasures")]
    assert all(row["position"] <= position and row["at"] for row in rows)
    return [(row["subject"], row["reason"]) for row in rows]
