"""Membership of the team."""

import pytest

from service.core.errors import Refusal
from tests.world import STAFF

EMAIL = "team@example.com"


async def hashed(in_memory, email=EMAIL):
    """Return the keyed hash of an address."""
    return (await in_memory.service.secrets.get()).lookup_email(email)


async def test_adding_twice_changes_nothing(in_memory):
    """An address has one id, however it is written."""
    staff = in_memory.service.staff
    first = await staff.add(EMAIL, STAFF)
    assert await staff.add("TEAM@example.com", STAFF) == first
    assert [(one.staff_id, one.email) for one in (await staff.list()).members] == [(first, EMAIL)]


async def test_a_readded_member_gets_a_new_id(in_memory):
    """A removed member has no access."""
    staff = in_memory.service.staff
    first = await staff.add(EMAIL, STAFF)
    await staff.remove(EMAIL, STAFF)
    assert await staff.by_address(await hashed(in_memory)) is None
    assert await staff.list() == ([], [])
    with pytest.raises(Refusal, match="staff_not_found"):
        await staff.remove(EMAIL, STAFF)
    second = await staff.add(EMAIL, STAFF)
    assert await staff.by_address(await hashed(in_memory)) == second != first


async def test_unknown_addresses_are_not_staff(in_memory):
    """Only added addresses are staff."""
    assert (
        await in_memory.service.staff.by_address(await hashed(in_memory, "no@example.com")) is None
    )
    with pytest.raises(Refusal, match="staff_not_found"):
        await in_memory.service.staff.remove("no@example.com", STAFF)
