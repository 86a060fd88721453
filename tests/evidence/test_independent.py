"""The independent replay finds faults of ours and names their place."""

import asyncio
import json
from uuid import UUID

import pytest
from eventsourcing.persistence import Notification, StoredEvent

from service.app.bootstrap import Service
from service.evidence.replay.comparison import SHOWN_MAX, compare, independent_claims
from service.evidence.replay.independent import PlainMapper, claim_list, numbered
from service.evidence.replay.independent_recorder import stock_recorder
from service.evidence.replay.log_fault import LogFault
from service.evidence.replay.moment import moment_of
from service.evidence.replay.state import replayed
from service.evidence.replay.wanted import EVERYTHING
from service.facts.catalogue import ACCOUNTS, PARTNER_LEDGER
from service.facts.claims import ClaimStageChanged
from service.ledger.database import LedgerUnavailable
from service.ledger.sequencer import Sequencer
from tests.patience import PATIENCE_SECONDS
from tests.projections.history import STAGES
from tests.world import STAFF, settings_for


async def test_a_projector_with_a_fault_is_found(world):
    """If ours ignores moves, each moved claim is reported with both stages."""
    partner, entity_id = await world.connected()
    created = [(await partner.claim(entity_id, f"case-{n}")).json() for n in range(4)]
    live = world.service.modes["live"]
    moved = created[1]["claim_id"]
    await live.claims.move(moved, STAGES[0], STAFF)
    position = await _numbered(live.ledger)
    theirs = await independent_claims(live.ledger.database, position, EVERYTHING, _nothing)
    well = await _compared(live.ledger, position, theirs)
    claim_projector = next(one for one in live.ledger.projectors if one.name == "claim_list")
    claim_projector.project = _forgetting(claim_projector.project)
    found = await _compared(live.ledger, position, theirs)
    assert well == (0, [])
    assert [one["claim_id"] for one in found.first] == [moved]
    assert found.first[0]["ours"]["stage"] == "triage"
    assert found.first[0]["independent"]["stage"] == STAGES[0]
    assert found.differences == 1


async def test_every_kind_of_difference_counts():
    """Claims that only one has, and claims that differ, are counted; the first are shown."""
    ours = [{"claim_id": str(n), "stage": "triage"} for n in range(30)]
    theirs = {one["claim_id"]: dict(one) for one in ours}
    theirs["0"]["stage"] = "closed"
    del theirs["1"]
    theirs["more"] = {"claim_id": "more", "stage": "triage"}
    assert await compare(_each(ours), theirs) == (
        3,
        [
            {"claim_id": "0", "ours": ours[0], "independent": theirs["0"]},
            {"claim_id": "1", "ours": ours[1], "independent": None},
            {"claim_id": "more", "ours": None, "independent": theirs["more"]},
        ],
    )
    many = await compare(_each(ours), {})
    assert (many.differences, len(many.first)) == (30, SHOWN_MAX)


@pytest.mark.parametrize("page", [1, 2, 1000])
async def test_the_log_is_read_to_its_position_and_no_further(world, monkeypatch, page):
    """Pages follow without gap or repetition, and progress ends at the position."""
    monkeypatch.setattr("service.evidence.replay.independent.PAGE", page)
    service = world.service
    for number in range(5):
        await service.partners.add(f"P{number}", f"p{number}@example.com", STAFF)
    size = await _numbered(service.accounts)
    advanced: list[int] = []

    def read(position: int) -> list[Notification]:
        with stock_recorder(service.accounts.database.url, "accounts") as recorder:
            return list(numbered(recorder, position, ACCOUNTS, advanced.append))

    found = await asyncio.to_thread(read, size - 1)
    assert [one.id for one in found] == list(range(1, size))
    assert sum(advanced) == size - 1
    with pytest.raises(LogFault, match=f"position {size + 1}: the log has no such event"):
        await asyncio.to_thread(read, size + 1)


def _notified(position: int, topic: str, **data: object) -> Notification:
    state = json.dumps({"class_version": 1, "meta": {}, "data": data}).encode()
    return Notification(UUID(int=position), 1, topic, state, position)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([_notified(1, "Invented")], "position 1: 'Invented' is no event of this ledger"),
        ([_notified(2, "ClaimStageChanged")], "position 1: the log has no such event"),
        ([_notified(1, "EntityConnected")] * 2, "position 1: the log has it more than once"),
        ([_notified(1, "ClaimStageChanged", claim_id="clm_1", stage="closed")], "KeyError"),
        ([_notified(1, "ClaimCreated")], "position 1: its ClaimCreated cannot be folded"),
    ],
)
def test_impossible_events_are_reported_with_their_position(events, said):
    """Unknown topics, gaps, repetitions, and events that no claim can have."""

    class Recorder:
        def select_notifications(self, start, *_arguments, **_options):
            return events[:1] if not start else events[1:]

    stored = numbered(Recorder(), len(events), PARTNER_LEDGER, _nothing)
    with pytest.raises(LogFault, match=said):
        claim_list(stored, PlainMapper(PARTNER_LEDGER))


def test_an_unknown_topic_is_no_claim():
    """The mapper refuses a topic that is not in the catalogue."""
    state = json.dumps({"class_version": 1, "meta": {}, "data": {}}).encode()
    event = StoredEvent(UUID(int=1), 1, "Invented", state)
    with pytest.raises(KeyError, match="Invented"):
        PlainMapper(PARTNER_LEDGER).to_domain_event(event)
    assert claim_list([], PlainMapper(PARTNER_LEDGER)) == {}


async def test_an_unreachable_database_is_unavailable(database_url, tmp_path, monkeypatch):
    """If the library's driver gets no answer, the ledger is unavailable."""
    monkeypatch.setattr("service.evidence.replay.independent_recorder.CONNECT_SECONDS_MAX", 0.2)
    async with Service(
        settings_for(database_url, tmp_path), deadline_seconds=PATIENCE_SECONDS
    ).opened() as service:
        database = service.modes["live"].ledger.database
        gone = database_url.rpartition("/")[0] + "/no_such_database"
        with pytest.raises(LedgerUnavailable):
            await asyncio.to_thread(_open, gone, database.schema)


def _open(url: str, schema: str) -> None:
    with stock_recorder(url, schema) as recorder:
        recorder.max_notification_id()


def _nothing(_steps: int) -> None:
    """Show no progress."""


def _forgetting(project):
    def forgetful(recorded):
        return [] if isinstance(recorded.event, ClaimStageChanged) else project(recorded)

    return forgetful


async def _numbered(ledger) -> int:
    sequencer = Sequencer(ledger)
    while (await sequencer.lag()).waiting:
        await sequencer.step()
    return (await moment_of(ledger)).position


async def _compared(ledger, position, theirs):
    async with replayed(ledger, position, _nothing) as state:
        return await compare(state.rows("claim_list"), theirs)


async def _each(rows):
    for row in rows:
        yield row
