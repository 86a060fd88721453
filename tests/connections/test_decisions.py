from datetime import UTC, datetime
from uuid import UUID

import pytest

from service.connections import decisions
from service.core.errors import Refusal
from service.facts.access import Access
from service.facts.connections import (
    ConnectLinkDeclined,
    ConnectLinkRedeemed,
    EntityConnected,
    EntityDisconnected,
)
from service.ledger.events import ERASED

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROW = {
    "link_id": "lnk_1",
    "stream_id": UUID(int=1),
    "partner_id": "ptn_1",
    "state": "issued",
    "expired": False,
}
LINK = decisions.Link("lnk_1", UUID(int=1), "ptn_1")
NEVER = Access("ent_1", "A business", True)
CONNECTED = Access("ent_1", "A business", True, 1, True, NOW)
DISCONNECTED = Access("ent_1", "A business", True, 2, False, NOW)


def test_an_issued_link_is_usable():
    """Before its hour is over, a link that nobody used can be approved or declined."""
    assert decisions.usable(ROW) == LINK
    assert decisions.decline(LINK) == ConnectLinkDeclined(link_id="lnk_1", partner_id="ptn_1")


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (None, "connect_token_invalid"),
        (ROW | {"state": "declined"}, "connect_token_invalid"),
        (ROW | {"state": "declined", "expired": True}, "connect_token_invalid"),
        (ROW | {"expired": True}, "connect_token_expired"),
        (ROW | {"state": "redeemed"}, "connect_token_already_redeemed"),
        (ROW | {"state": "redeemed", "expired": True}, "connect_token_already_redeemed"),
    ],
)
def test_what_became_of_a_link_is_its_refusal(row, code):
    """Contract section 3: redeemed stays redeemed, also after the hour."""
    with pytest.raises(Refusal) as refused:
        decisions.usable(row)
    assert refused.value.code == code


@pytest.mark.parametrize("access", [NEVER, DISCONNECTED], ids=["never", "disconnected"])
def test_approving_connects(access):
    """For the first time, and again after a disconnection (readings)."""
    assert decisions.approve(LINK, access) == (
        ConnectLinkRedeemed(link_id="lnk_1", partner_id="ptn_1", entity_id="ent_1"),
        EntityConnected(
            partner_id="ptn_1", entity_id="ent_1", via="connect_link", source_id="lnk_1"
        ),
    )


def test_a_linked_entity_is_not_linked_again():
    """An entity that is connected refuses a second link."""
    with pytest.raises(Refusal) as refused:
        decisions.approve(LINK, CONNECTED)
    assert refused.value.code == "entity_already_linked"


def test_disconnecting():
    """A connection ends once; where there was none, there is nothing to end."""
    gone = EntityDisconnected(partner_id="ptn_1", entity_id="ent_1")
    assert decisions.disconnect(CONNECTED, "ptn_1") == [gone]
    assert decisions.disconnect(DISCONNECTED, "ptn_1") == []
    with pytest.raises(Refusal) as refused:
        decisions.disconnect(NEVER, "ptn_1")
    assert refused.value.code == "entity_not_owned"


@pytest.mark.parametrize("access", [NEVER, DISCONNECTED], ids=["never", "disconnected"])
def test_the_team_connects(access):
    """On the customer's word, for the first time and again."""
    assert decisions.connect_by_staff(access, "ptn_1") == [
        EntityConnected(partner_id="ptn_1", entity_id="ent_1", via="staff")
    ]


def test_the_team_connects_once_and_only_who_uses_the_service():
    """Twice changes nothing; an onboarding that is open has to be finished by its person."""
    assert decisions.connect_by_staff(CONNECTED, "ptn_1") == []
    with pytest.raises(Refusal) as refused:
        decisions.connect_by_staff(NEVER._replace(established=False), "ptn_1")
    assert refused.value.code == "entity_state"


@pytest.mark.parametrize("access", [NEVER, CONNECTED, DISCONNECTED])
def test_an_erased_entity_is_not_connected_again(access):
    """Nobody can sign in for it; what it had stays."""
    with pytest.raises(Refusal, match="entity_not_found"):
        decisions.approve(LINK, access._replace(erased=True))


def test_the_team_does_not_connect_an_erased_entity():
    """As its customer could not: nobody can speak for it any more."""
    with pytest.raises(Refusal, match="entity_not_found"):
        decisions.connect_by_staff(NEVER._replace(erased=True), "ptn_1")


def test_a_business_may_be_named_like_the_marker_of_an_erasure():
    """What it is called says nothing of its data: it connects like any other."""
    namesake = NEVER._replace(name=ERASED)
    assert len(decisions.approve(LINK, namesake)) == 2
    assert len(decisions.connect_by_staff(namesake, "ptn_1")) == 1
