"""`claim-ledger staff` on a running service, and who runs the team's commands."""

import asyncio
import json

import psycopg
import pytest

from tests.cli.team import mailbox
from tests.sessions import moved_in_time, session_of
from tests.world import STAFF, TEAM, settings_for, world_on

OTHER = "other@example.com"
ACTORS = """
select topic, convert_from(state, 'UTF8')::jsonb -> 'meta' ->> 'actor'
from accounts.events order by append_id
"""

OF_PERSON = """
select topic, (event -> 'data' ->> 'sessions')::int, event -> 'meta' ->> 'actor'
from accounts.events, lateral (select convert_from(state, 'UTF8')::jsonb as event) as opened
where topic in ('PersonSignedOut', 'PasskeysReset') and event -> 'data' ->> 'person_id' = %s
order by append_id
"""
CONTAINING = "select count(*) from accounts.events where convert_from(state, 'UTF8') like %s"
VERBS = ("sign-out", "recover")


def test_every_command_names_somebody_of_the_team(as_named, database_url):
    """Only the first is added by nobody; `--as` goes before the setting; who left is refused."""
    partner = ("partners", "add", "P", "--email", "p@example.com")
    nobody = as_named(*partner)
    first = as_named("staff", "add", TEAM)
    second = [as_named("staff", "add", OTHER), as_named("staff", "add", OTHER, "--as", TEAM)]
    added = [as_named(*partner, STAFF=TEAM), as_named(*partner, "--as", OTHER, STAFF=TEAM)]
    stranger = as_named(*partner, "--as", "stranger@example.com")
    as_named("staff", "remove", OTHER, "--as", TEAM.upper())
    former = [as_named(*partner, "--as", OTHER), as_named("partners", "list", STAFF=OTHER)]
    for refused in (nobody, second[0]):
        assert (refused.returncode, "--as EMAIL" in refused.stdout) == (1, True)
    for refused in (stranger, *former):
        assert (refused.returncode, json.loads(refused.stdout)["code"]) == (1, "not_staff")
    one, two = (f"staff:{json.loads(done.stdout)['staff_id']}" for done in (first, second[1]))
    assert [done.returncode for done in added] == [0, 0]
    with psycopg.connect(database_url) as owner:
        assert owner.execute(ACTORS).fetchall() == [
            ("StaffAdded", "system:installation"),
            ("StaffAdded", one),
            ("PartnerApplied", one),
            ("PartnerApplied", two),
            ("StaffRemoved", one),
        ]


def test_staff_are_added_listed_and_removed(team):
    """An address is staff until it is removed; adding it twice writes one event."""
    email = mailbox()
    added = team.do("staff", "add", email)
    events = team.events()
    assert team.do("staff", "add", email) == added
    assert team.events() == events
    mine = [one for one in team.do("staff", "list")["staff"] if one["email"] == email]
    assert [one["staff_id"] for one in mine] == [added["staff_id"]]
    assert mine[0]["added_at"].endswith("Z")
    assert team.do("staff", "remove", email) == {"removed": email}
    assert email not in str(team.do("staff", "list"))
    assert team.refused("staff", "remove", email) == "staff_not_found"


def test_an_address_that_is_nobodys_is_no_success(team):
    """It may be mistyped; what was tried is on record all the same, and no address is.

    Nobody recovers themselves, however their address is written.
    """
    email = mailbox()
    shown = team.do("people", "show", email)
    before = team.events()
    for verb, ended in (("sign-out", {}), ("recover", {"passkeys_removed": 0})):
        answer = {"person_id": shown["person_id"], "sessions_ended": 0} | ended | shown
        assert team.answer("people", verb, email) == (1, answer)
        assert "Is it the right one?" in team.raw("people", verb, email).stdout
    assert team.events() - before == 4
    with psycopg.connect(team.dev.facts["database_url"]) as owner:
        (found,) = owner.execute(CONTAINING, [f"%{email}%"]).fetchone()
    assert found == 0
    assert team.refused("people", "recover", TEAM.upper()) == "own_recovery"
    assert team.refused("people", "show", "nobody") == "validation_failed"


async def test_what_the_team_took_from_a_person_is_told_and_recorded(
    as_named, database_url, tmp_path
):
    """How many sessions and passkeys; one that had not been used for too long counts as none."""
    as_named("staff", "add", TEAM)
    async with world_on(settings_for(database_url, tmp_path), tmp_path, follow=False) as world:
        service = world.service
        idling = await session_of(service, OTHER)
        await moved_in_time(service, "sessions", "started_at", 60 * 6)
        for _ in range(2):
            await session_of(service, OTHER)
        person_id = idling.person.person_id
        await service.passkeys.add(person_id, b"credential", b"key", STAFF)

        def said(verb, **given):
            return as_named("people", verb, OTHER, STAFF=TEAM, **given)

        done = [json.loads((await asyncio.to_thread(said, "sign-out")).stdout)]
        await session_of(service, OTHER)
        done.append(json.loads((await asyncio.to_thread(said, "recover")).stdout))
        again = [await asyncio.to_thread(said, verb, as_json=False) for verb in VERBS]
    assert [one["sessions_ended"] for one in done] == [2, 1]
    assert done[1]["passkeys_removed"] == 1
    assert [one.returncode for one in again] == [0, 0]
    assert again[0].stdout.startswith("OK: 0 sessions ended\n")
    assert again[1].stdout.startswith("OK: 0 passkeys removed, 0 sessions ended\n")
    staff_id = json.loads(as_named("staff", "list", STAFF=TEAM).stdout)["staff"][0]["staff_id"]
    with psycopg.connect(database_url) as owner:
        assert owner.execute(OF_PERSON, [person_id]).fetchall() == [
            ("PersonSignedOut", 2, f"staff:{staff_id}"),
            ("PasskeysReset", None, f"staff:{staff_id}"),
            ("PersonSignedOut", 0, f"staff:{staff_id}"),
            ("PasskeysReset", None, f"staff:{staff_id}"),
        ]


@pytest.mark.parametrize("verb", ["add", "remove"])
@pytest.mark.parametrize("email", ["", "nobody", "a b@example.com"])
def test_malformed_staff_addresses_are_refused(team, verb, email):
    """A malformed address is reported as a fault of its field."""
    code, answer = team.answer("staff", verb, email)
    assert (code, answer["code"]) == (1, "validation_failed")
    assert set(answer["details"]["fieldErrors"]) == {"email"}
