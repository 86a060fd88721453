"""`audit replay` shows the state of any moment, from numbered events alone."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from service.app.bootstrap import Service
from service.core.errors import Refusal
from service.evidence.replay.comparison import compare, independent_claims
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import SHOWN, replayed
from service.evidence.replay.wanted import EVERYTHING, Wanted
from service.ledger.sequencer import Sequencer
from tests.projections.history import TABLES, History
from tests.tables import every_row
from tests.world import STAFF

pytestmark = pytest.mark.followed


async def test_a_replay_is_the_state_of_its_moment(documents, database_url):
    """Half-way and at the end each ledger's replay equals its read models of then.

    Also once the read models are empty: it comes from events alone. The stock recorder's fold is
    the same claim list each time, and `GET /claims` has paged through the same claims.
    """
    world = documents.world
    history = History(documents, seed=11)
    await history.run(90)
    await history.checked()
    half = await _all_numbered(world.service)
    then = {ledger.name: await _live(ledger) for ledger in world.service.ledgers}
    await history.run(150)
    await history.checked()
    full = await _all_numbered(world.service)
    now = {ledger.name: await _live(ledger) for ledger in world.service.ledgers}
    listed = await _listed(history)
    await asyncio.to_thread(_empty_read_models, database_url)  # the loop may hold some
    for ledger in world.service.ledgers:
        assert half[ledger.name] < full[ledger.name]
        assert await _replayed(ledger, half[ledger.name]) == then[ledger.name]
        assert await _replayed(ledger, full[ledger.name]) == now[ledger.name]
    live = world.service.modes["live"].ledger
    for position, claims in ((half["live"], then), (full["live"], now)):
        ours = claims["live"]["claim_list"]
        theirs = await independent_claims(live.database, position, EVERYTHING, _nothing)
        assert sorted(theirs) == sorted(claim["claim_id"] for claim in ours)
        assert await compare(_each(ours), theirs) == (0, [])
    partners = {partner.partner_id for partner in history.partners[1:]}
    shown = [one for one in now["live"]["claim_list"] if one["partner_id"] in partners]
    assert len(shown) > 5
    assert listed == sorted((claim["claim_id"], claim["stage"]) for claim in shown)


async def test_filters_show_what_read_models_have_and_related_rows(documents):
    """Of every claim, entity and partner: events that are not needed change no answer."""
    world = documents.world
    history = History(documents, seed=13)
    await history.run(200)
    await history.checked()
    live = world.service.modes["live"].ledger
    size = (await _all_numbered(world.service))["live"]
    everything = await _live(live)
    asked = {
        *(Wanted(claim_id=one["claim_id"]) for one in everything["claim_list"][:5]),
        *(Wanted(entity_id=one["entity_id"]) for one in everything["entities"]),
        *(Wanted(partner_id=one["partner_id"]) for one in everything["connections"]),
        *(Wanted(claim_id=one["claim_id"]) for one in everything["claim_documents"][:3]),
    }
    assert len(asked) > 5
    with every_row() as row:
        for wanted in asked:
            with row(wanted):
                assert await _replayed(live, size, wanted) == await _live(live, wanted)
    await _filters_show_related_rows(live, size)


async def _filters_show_related_rows(live, size):
    """A claim's entity, connection and documents; all of an entity; all of a partner."""
    everything = await _replayed(live, size)
    claim = everything["claim_list"][0]
    of_claim = await _replayed(live, size, Wanted(claim_id=claim["claim_id"]))
    of_entity = await _replayed(live, size, Wanted(entity_id=claim["entity_id"]))
    of_partner = await _replayed(live, size, Wanted(partner_id=claim["partner_id"]))
    assert of_claim["claim_list"] == [claim]
    assert [one["entity_id"] for one in of_claim["entities"]] == [claim["entity_id"]]
    assert of_claim["connections"] == [
        one
        for one in everything["connections"]
        if (one["entity_id"], one["partner_id"]) == (claim["entity_id"], claim["partner_id"])
    ]
    for shown, name in ((of_entity, "entity_id"), (of_partner, "partner_id")):
        for table in ("claim_list", "connections", "onboardings", "connect_links"):
            assert shown[table] == [one for one in everything[table] if one[name] == claim[name]], (
                table
            )
        ours = {one["claim_id"] for one in shown["claim_list"]}
        assert shown["claim_documents"] == [
            one for one in everything["claim_documents"] if one["claim_id"] in ours
        ]
    theirs = await independent_claims(
        live.database, size, Wanted(partner_id=claim["partner_id"]), _nothing
    )
    assert await compare(_each(of_partner["claim_list"]), theirs) == (0, [])


async def test_a_time_chooses_the_last_position_that_happened_by_then(service):
    """If clocks went back, it is the last event that is not later."""
    clock = service.clock
    day = datetime(2026, 3, 1, tzinfo=UTC)
    try:
        for hour in (1, 3, 2, 5, 4):
            service.accounts.clock = lambda hour=hour: day + timedelta(hours=hour)
            await _partner(service, f"p{hour}@example.com")
    finally:
        service.accounts.clock = clock
    await _all_numbered(service)
    found = {
        hours: await moment_of(service.accounts, at=day + timedelta(hours=hours))
        for hours in (0, 1, 1.5, 2, 2.5, 3.5, 4.5, 6)
    }
    positions = {hours: one.position for hours, one in found.items()}
    assert positions == {0: 0, 1: 1, 1.5: 1, 2: 3, 2.5: 3, 3.5: 3, 4.5: 5, 6: 5}
    assert found[0].at is None
    assert found[2.5].at == day + timedelta(hours=2)
    assert {one.size for one in found.values()} == {5}


async def test_unnumbered_events_are_not_replayed(service):
    """A committed event without a position belongs to no moment."""
    await _partner(service, "a@example.com")
    await _all_numbered(service)
    await _partner(service, "b@example.com")
    moment = await moment_of(service.accounts)
    partners = (await _replayed(service.accounts, moment.position))["partners"]
    assert (moment.position, moment.size) == (1, 1)
    assert [one["email"] for one in partners] == ["a@example.com"]


async def test_a_position_that_the_log_has_not_reached_is_refused(service):
    """The refusal gives the log's size; position 0 is the empty beginning."""
    await _partner(service, "a@example.com")
    await _all_numbered(service)
    with pytest.raises(Refusal, match="validation_failed") as refused:
        await moment_of(service.accounts, position=2)
    assert refused.value.envelope()["details"]["fieldErrors"] == {
        "position": ["the log has 1 numbered events"]
    }
    assert await moment_of(service.accounts, position=0) == (0, None, 1)
    assert (await _replayed(service.accounts, 0))["partners"] == []


async def test_an_erased_name_is_shown_as_erased(service, owner):
    """Once a key is destroyed, no replay of any moment shows the name."""
    await _partner(service, "a@example.com")
    await _all_numbered(service)
    owner.execute("delete from accounts.data_keys")
    (partner,) = (await _replayed(service.accounts, 1))["partners"]
    assert (partner["name"], partner["email"]) == ("[erased]", "[erased]")


async def test_a_replay_leaves_nothing_behind(service, owner):
    """No row of a read model changes, and no table remains."""
    await _partner(service, "a@example.com")
    await _all_numbered(service)
    owner.execute("update accounts.partners set name = 'as it was'")
    await _replayed(service.accounts, 1)
    tables = "select count(*) from pg_class where relpersistence = 't' and relkind = 'r'"
    assert owner.execute(tables).fetchall() == [(0,)]
    assert owner.execute("select name from accounts.partners").fetchall() == [("as it was",)]


def _nothing(_steps: int) -> None:
    """Show no progress."""


async def _partner(service: Service, email: str) -> str:
    return await service.partners.add("P", email, STAFF)


async def _all_numbered(service: Service) -> dict[str, int]:
    """Number waiting events; return each ledger's size."""
    sizes = {}
    for ledger in service.ledgers:
        sequencer = Sequencer(ledger)
        while (await sequencer.lag()).waiting:
            await sequencer.step()
        sizes[ledger.name] = (await sequencer.lag()).size
    return sizes


def _shown(ledger) -> list[str]:
    own = {table.name for projector in ledger.projectors for table in projector.tables}
    return [table for table in SHOWN if table in own]


async def _replayed(ledger, position, wanted=EVERYTHING) -> dict[str, list[dict[str, Any]]]:
    async with replayed(ledger, position, _nothing, wanted=wanted) as state:
        return {table: [row async for row in state.rows(table)] for table in _shown(ledger)}


async def _live(ledger, wanted=EVERYTHING) -> dict[str, list[dict[str, Any]]]:
    """Return the same rows from the read models."""
    found = {}
    for table in _shown(ledger):
        rows = [dict(row) for row in await ledger.database.reads.fetch(SHOWN[table], *wanted)]
        found[table] = [
            row | {"partner_invoice_ids": json.loads(row["partner_invoice_ids"])}
            if "partner_invoice_ids" in row
            else row
            for row in rows
        ]
    return found


async def _listed(history: History) -> list[tuple[str, str]]:
    """Page through `GET /claims` for each partner and entity."""
    found = []
    entities = await history.world.service.modes["live"].ledger.database.reads.fetch(
        SHOWN["entities"], None, None, None
    )
    for partner in history.partners[1:]:
        for entity in entities:
            asked = {"entity_id": entity["entity_id"], "limit": 5}
            while asked:
                page = (await partner.call("GET", "/claims", params=asked)).json()
                found += [(one["claim_id"], one["stage"]) for one in page.get("claims", [])]
                token = page.get("next_page_token")
                asked = asked | {"page_token": token} if token else None
    return sorted(found)


def _empty_read_models(url: str) -> None:
    with psycopg.connect(url) as owner:
        for table in TABLES:
            owner.execute(f"truncate {table}")


async def _each(rows: list[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    for row in rows:
        yield row
