"""What partners are told of: of which facts, and in which rows."""

import msgspec
import pytest

from projections.partner_events.projector import TYPES, PartnerEventsProjector
from service.facts.catalogue import PARTNER_LEDGER
from service.ledger.events import Recorded
from tests.ledger.samples import AT, CANARY, META, STREAM, sample

NOT_TOLD = {
    "EntityRegistered": "no partner's",
    "EntityCorrected": "no partner's",
    "StageMailsChosen": "no partner's",
    "ConnectLinkIssued": "the partner did it, and was answered",
    "OnboardingStarted": "the partner did it, and was answered",
    "OnboardingReplayMismatched": "the partner did it, and was answered",
    "DocumentsAttached": "part of the claim's creation",
    "FirstMessagePosted": "part of the claim's creation",
    "ClaimReplayMismatched": "the partner did it, and was answered",
    "PersonalDataErased": "the service's own",
    "LineageBegun": "the service's own",
    "EventsBound": "the service's own",
    "EventTakenBack": "the service's own",
}


def rows(cls):
    """Return the rows that an event of a class makes."""
    recorded = Recorded(1, STREAM, 1, sample(cls), META, 7)
    return [write.row for write in PartnerEventsProjector().project(recorded)]


def test_every_event_is_told_or_excused():
    """A new event is told to the partner concerned, or there is a reason why not."""
    assert {cls.__name__ for cls in TYPES}.isdisjoint(NOT_TOLD)
    assert {cls.__name__ for cls in TYPES} | NOT_TOLD.keys() >= PARTNER_LEDGER.keys()


@pytest.mark.parametrize("cls", PARTNER_LEDGER.values(), ids=PARTNER_LEDGER)
def test_rows_hold_ids_and_stages_alone(cls):
    """Nothing encrypted, no reference of the partner's: an erasure leaves nothing behind."""
    made = rows(cls)
    text = msgspec.json.encode(made).decode()
    assert (CANARY in text, "the-partner_claim_id" in text, "the-detail" in text) == (False,) * 3
    assert len(made) == (cls in TYPES)
    for row in made:
        assert row[:2] == (STREAM, 7)
        assert {TYPES[cls], AT} < set(row)


@pytest.mark.parametrize(
    ("via", "names"),
    [("onboarding", (True, False)), ("connect_link", (False, True)), ("staff", (False, False))],
)
def test_a_connection_names_what_brought_it(via, names):
    """By the kind of what that is; the team's own is brought by nothing."""
    event = msgspec.structs.replace(sample(PARTNER_LEDGER["EntityConnected"]), via=via)
    (write,) = PartnerEventsProjector().project(Recorded(1, STREAM, 1, event, META, 7))
    assert tuple(name == "the-source_id" for name in write.row[-2:]) == names
