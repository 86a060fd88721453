"""How often a partner's people change it in a day: with a fresh proof, and without one."""

from datetime import timedelta

import pytest

from service.core.errors import Refusal
from service.facts import changes
from service.ledger.events import Cause
from tests.world import STAFF

MEMBER = Cause("member:per_1", "req_1")
CHANGES_MAX = 6


@pytest.fixture
async def partner_id(in_memory, monkeypatch):
    """Return an approved partner whose people make few changes a day."""
    monkeypatch.setattr(changes, "CHANGES_MAX", CHANGES_MAX)
    partner_id = await in_memory.service.partners.add("Partner", "p@example.com", STAFF)
    await in_memory.service.partners.approve(partner_id, STAFF)
    return partner_id


async def rolled(commands, partner_id, mode, times):
    """Roll a new key so often, one after the other."""
    key = await commands.issue_key(partner_id, mode, STAFF)
    for _ in range(times):
        key = await commands.roll_key(partner_id, key.key_id, timedelta(), MEMBER)


async def test_what_takes_no_proof_uses_up_nothing_that_does(in_memory, partner_id):
    """Somebody with a session alone cannot keep a live key from being rolled, nor a test key."""
    commands = in_memory.service.partners
    for _ in range(CHANGES_MAX):
        await commands.lend_key(partner_id, MEMBER)
    for refused in (
        commands.lend_key(partner_id, MEMBER),
        commands.issue_key(partner_id, "test", MEMBER),
        commands.change_settings(partner_id, MEMBER, return_link=True),
        commands.reset_sandbox(partner_id, 1, MEMBER),
    ):
        with pytest.raises(Refusal, match="rate_limited"):
            await refused
    await rolled(commands, partner_id, "live", 1)
    await rolled(commands, partner_id, "test", CHANGES_MAX)
    with pytest.raises(Refusal, match="rate_limited"):
        await rolled(commands, partner_id, "test", 1)
    await rolled(commands, partner_id, "live", 1)
    await commands.issue_key(partner_id, "live", MEMBER)
    await commands.add_member(partner_id, "second@example.com", MEMBER)
    await commands.change_settings(partner_id, MEMBER, return_url="https://example.com/back")


async def test_what_takes_a_proof_is_bounded_too(in_memory, partner_id):
    """By itself; a key is still rolled when it is used up, but not without end."""
    commands = in_memory.service.partners
    for number in range(CHANGES_MAX):
        await commands.change_settings(
            partner_id, MEMBER, return_url=f"https://example.com/{number}"
        )
    for refused in (
        commands.issue_key(partner_id, "live", MEMBER),
        commands.add_member(partner_id, "second@example.com", MEMBER),
        commands.change_settings(partner_id, MEMBER, return_url=""),
    ):
        with pytest.raises(Refusal, match="rate_limited"):
            await refused
    await commands.lend_key(partner_id, MEMBER)
    await commands.change_settings(partner_id, MEMBER, return_link=True)
    await rolled(commands, partner_id, "live", CHANGES_MAX)
    with pytest.raises(Refusal, match="rate_limited"):
        await rolled(commands, partner_id, "live", 1)
