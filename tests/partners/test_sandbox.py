"""Beginning a partner's sandbox anew: what the stream says, and what is known afterwards."""

import pytest

from service.core.errors import Refusal
from service.facts.partners import (
    PartnerApplied,
    PartnerApproved,
    PartnerRevoked,
    SandboxReset,
    fold,
)
from service.ledger.events import Cause
from service.partners import decisions
from service.sandbox.commands import SandboxCommands
from service.sandbox.fixtures import fixture_ids
from tests.world import STAFF

APPROVED = [PartnerApplied(partner_id="ptn_1"), PartnerApproved(partner_id="ptn_1")]
MEMBER = Cause("member:per_1", "req_1")


def test_a_reset_begins_the_next_epoch():
    """The epoch follows the present one; the fold knows it."""
    (event,) = decisions.reset_sandbox(fold(APPROVED), 1)
    assert event == SandboxReset(partner_id="ptn_1", epoch=1)
    assert fold([*APPROVED, event]).sandbox_epoch == 1


@pytest.mark.parametrize("epoch", [0, 1, 3])
def test_another_epoch_than_the_next_changes_nothing(epoch):
    """So a form that is sent twice resets once."""
    partner = fold([*APPROVED, SandboxReset(partner_id="ptn_1", epoch=1)])
    assert decisions.reset_sandbox(partner, epoch) == []


@pytest.mark.parametrize(
    ("past", "code"),
    [
        ([], "partner_not_found"),
        (APPROVED[:1], "partner_state"),
        ([*APPROVED, PartnerRevoked(partner_id="ptn_1")], "partner_state"),
    ],
    ids=["unknown", "pending", "revoked"],
)
def test_only_an_approved_partner_has_a_sandbox(past, code):
    """Others are refused."""
    with pytest.raises(Refusal) as refused:
        decisions.reset_sandbox(fold(past), 1)
    assert refused.value.code == code


async def test_references_are_free_and_nothing_is_gone(world):
    """As docs/partners/sandbox.md says: three new ids; the old entity lists a reference twice."""
    partner, service = await world.partner(), world.service
    old = (await partner.sandbox()).connected_entity_id
    first = await partner.claim(old, mode="test")
    commands = SandboxCommands(service.modes["test"].ledger, service.partners, service.sandbox)
    for _ in range(2):
        await commands.reset(partner.partner_id, 1, MEMBER)
    row = await service.partner_list.sandbox(partner.partner_id)
    assert (row["sandbox_epoch"], row["sandbox_reset_at"] is not None) == (1, True)
    new = fixture_ids(partner.partner_id, 1)
    assert (await partner.claim(new.connected_entity_id, mode="test")).status_code == 201
    again = await partner.claim(old, mode="test")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["claim_id"] != again.json()["claim_id"]
    listed = await partner.call("GET", f"/claims?entity_id={old}", mode="test")
    assert [(one["claim_id"], one["partner_claim_id"]) for one in listed.json()["claims"]] == [
        (one.json()["claim_id"], "case-1") for one in (again, first)
    ]
    assert len({*new, *(await partner.sandbox())}) == 6
    refused = await partner.claim(new.disconnected_entity_id, mode="test")
    assert refused.json()["code"] == "partner_disconnected"


async def test_live_mode_knows_no_epoch(in_memory):
    """After a reset a live reference is replayed as before."""
    partner, service = await in_memory.partner(), in_memory.service
    entity_id = await partner.connected_entity()
    first = await partner.claim(entity_id)
    commands = SandboxCommands(service.modes["test"].ledger, service.partners, service.sandbox)
    await commands.reset(partner.partner_id, 1, MEMBER)
    again = await partner.claim(entity_id)
    assert (again.status_code, again.json()["claim_id"]) == (200, first.json()["claim_id"])


async def test_events_name_the_person(world):
    """Disconnecting twice and connecting twice make one event each, by the member."""
    partner, service = await world.partner(), world.service
    test = service.modes["test"].ledger
    commands = SandboxCommands(test, service.partners, service.sandbox)
    entity_id = (await partner.sandbox()).connected_entity_id
    for change in (commands.disconnect, commands.disconnect, commands.connect, commands.connect):
        await change(partner.partner_id, 0, entity_id, MEMBER)
    async with test.database.writes.connection() as connection:
        actors = await connection.fetch(
            "select e.topic from test.events as e where position($1::bytea in state) > 0"
            " order by append_id",
            b"member:per_1",
        )
    assert [row["topic"] for row in actors] == ["EntityDisconnected", "EntityConnected"]


async def test_nobody_drives_another_s_entity(in_memory):
    """Another partner's, a live business's and an unknown one's id are refused alike."""
    partner, other = await in_memory.partner(), await in_memory.partner()
    service = in_memory.service
    commands = SandboxCommands(service.modes["test"].ledger, service.partners, service.sandbox)
    theirs = await other.sandbox()
    for entity_id in (*theirs, await in_memory.entity(), "ent_none"):
        for change in (commands.connect, commands.disconnect):
            with pytest.raises(Refusal) as refused:
                await change(partner.partner_id, 0, entity_id, STAFF)
            assert refused.value.code == "sandbox_entity_not_found"
    still = await other.claim(theirs.connected_entity_id, mode="test")
    assert still.status_code == 201
