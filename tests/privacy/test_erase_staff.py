"""Erasing somebody who was on the team."""

import psycopg
import pytest

from service.cli.erasing import erase_subject, find_subject, unlisted
from service.cli.keys_at_rest import verify_all
from service.cli.target import Target
from service.core.errors import Refusal
from service.facts.people import StaffAdded, StaffRemoved
from service.facts.privacy import PersonalDataErased
from service.privacy.erasure_list import ListedErasure
from tests.ledger.raw_events import RawEvent, write_foreign
from tests.privacy.reapplied import reapplied
from tests.progress import Shown
from tests.sessions import session_of
from tests.world import STAFF

EMAIL = "zoe.canary@example.com"


async def test_whoever_was_removed_from_the_team_is_erased(privacy, database_url):
    """With every id of the address, and sessions; what is erased is nobody on the team."""
    service = privacy.service
    target, staff = Target(service, STAFF), service.staff
    ids = []
    for _ in range(2):
        ids.append(await staff.add(EMAIL, STAFF))
        with pytest.raises(Refusal, match="staff_present"):
            await find_subject(target, privacy.listed, "staff", ids[0])
        await staff.remove(EMAIL, STAFF)
    await session_of(service, EMAIL)
    before = await privacy.found(EMAIL)
    mode, parts, member = await find_subject(target, privacy.listed, "staff", ids[0])
    done = await erase_subject(target, mode, parts, member, "case 1", with_claims=False)
    again = await find_subject(target, privacy.listed, "staff", ids[1])
    twice = await erase_subject(target, *again, "again", with_claims=False)
    assert {one.subject for one in before if one.kind == "event"} == set(ids)
    assert {one.topic for one in before} == {"StaffAdded", "staff", "sessions"}
    assert (mode, done.erased.is_new, done.erased.keys) == ("accounts", True, 1)
    assert (twice.erased.is_new, twice.erased.reason) == (False, "case 1")
    assert await privacy.found(EMAIL) == []
    with psycopg.connect(database_url) as owner:
        assert owner.execute("select * from accounts.sessions").fetchall() == []


async def test_an_erased_address_can_join_the_team_again(privacy):
    """Under a new id, with a key that opens; the list erases the first one alone, once more."""
    service = privacy.service
    target, staff = Target(service, STAFF), service.staff
    old = await staff.add(EMAIL, STAFF)
    await staff.remove(EMAIL, STAFF)
    erased = await find_subject(target, privacy.listed, "staff", old)
    await erase_subject(target, *erased, "case 1", with_claims=False)
    new = await staff.add(EMAIL, STAFF)
    assert await staff.add(EMAIL, STAFF) == new != old
    assert await staff.find(EMAIL) == new
    assert [(one.staff_id, one.email) for one in (await staff.list()).members] == [(new, EMAIL)]
    done, faults = await reapplied(privacy)
    assert ([one.changed for one in done], faults) == ([False], [])
    assert await staff.find(EMAIL) == new
    await staff.remove(EMAIL, STAFF)
    assert await staff.find(EMAIL) is None


async def test_whoever_joins_the_team_again_meanwhile_is_not_erased(privacy):
    """Nor is anything listed: reapplying the list would take them off the team later."""
    target, staff = Target(privacy.service, STAFF), privacy.service.staff
    staff_id = await staff.add(EMAIL, STAFF)
    await staff.remove(EMAIL, STAFF)
    member = await find_subject(target, privacy.listed, "staff", staff_id)
    again = await staff.add(EMAIL, STAFF)
    with pytest.raises(Refusal, match="staff_present"):
        await erase_subject(target, *member, "case 1", with_claims=False)
    assert (await staff.find(EMAIL), await privacy.listed.names()) == (again, [])


async def test_what_another_wrote_stops_no_erasure_of_a_member(privacy, owner):
    """It is named, as for other subjects."""
    target, staff = Target(privacy.service, STAFF), privacy.service.staff
    staff_id = await staff.add(EMAIL, STAFF)
    await staff.remove(EMAIL, STAFF)
    with owner.transaction():  # no event gets a number meanwhile: none is set aside
        owner.execute("select size from accounts.head for update")
        member = await privacy.parts("accounts").subjects.staff_by_log(staff_id, Shown())
        foreign = RawEvent(member.stream_id, 3, "StaffAdded", b"{}")
        await write_foreign(privacy.service.accounts, foreign)
        found = await find_subject(target, privacy.listed, "staff", staff_id)
        done = await erase_subject(target, *found, "case 1", with_claims=False)
    assert (done.erased.is_new, done.erased.keys) == (True, 1)
    assert {(one.stream_id, one.version) for one in done.unread} == {foreign[:2]}


async def test_tables_that_a_rebuild_keeps_are_cleared_of_a_member(privacy, owner):
    """Those that it is building, too."""
    service = privacy.service
    target, staff_id = Target(service, STAFF), await service.staff.add(EMAIL, STAFF)
    await service.staff.remove(EMAIL, STAFF)
    schemas = {"accounts_next", "accounts_previous"}
    for schema in schemas:
        owner.execute(f"create schema {schema}")
        owner.execute(f"grant usage on schema {schema} to claim_ledger_accounts")
        owner.execute(f"create table {schema}.staff (like accounts.staff)")
        owner.execute(f"insert into {schema}.staff table accounts.staff")
        owner.execute(f"grant select, update on {schema}.staff to claim_ledger_accounts")
    before = {place.kind for place in await privacy.found(EMAIL)}
    member = await find_subject(target, privacy.listed, "staff", staff_id)
    await erase_subject(target, *member, "case 1", with_claims=False)
    assert before > schemas
    assert await privacy.found(EMAIL) == []


async def test_a_member_in_the_list_is_erased_again_after_a_restore(privacy):
    """Also one whom the backup has on the team: their key is a finding until then."""
    service = privacy.service
    staff_id = await service.staff.add(EMAIL, STAFF)
    member = await privacy.parts("accounts").subjects.staff_by_log(staff_id, Shown())
    keys, at = [member.stream_id], service.clock()
    given = {"ledger": "accounts", "kind": "staff", "subject": staff_id, "data_keys": keys}
    await privacy.listed.put(ListedErasure(**given, reason="x", at=at))
    before = await verify_all(service)
    done, faults = await reapplied(privacy)
    after = await verify_all(service)
    assert [one["name"] for one in before["faulty_keys"]] == [str(member.stream_id)]
    assert ([one.changed for one in done], faults) == ([True], [])
    assert (after["faulty_keys"], after["lost_keys"]) == ([], [])
    assert (await service.staff.list(), await service.staff.find(EMAIL)) == (([], []), None)
    past = [type(one.event) for one in await service.accounts.read(member.stream_id)]
    assert past == [StaffAdded, StaffRemoved, PersonalDataErased]  # whoever acts later is accused
    assert await privacy.found(EMAIL) == []
    modes = service.privacy(privacy.listed).values()
    assert await unlisted(modes) == 0
    (name,) = await privacy.listed.names()
    (privacy.published / name).unlink()
    assert await unlisted(modes) == 1
