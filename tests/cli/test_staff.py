"""`claim-ledger staff` on a running service, and who runs the team's commands."""

import json

import psycopg
import pytest

from tests.cli.team import mailbox
from tests.world import TEAM

OTHER = "other@example.com"
ACTORS = """
select topic, convert_from(state, 'UTF8')::jsonb -> 'meta' ->> 'actor'
from accounts.events order by append_id
"""


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


def test_people_are_shown_signed_out_and_recovered(team):
    """Anybody who signs in; nobody recovers themselves, however their address is written."""
    email = mailbox()
    shown = [team.do("people", verb, email) for verb in ("show", "sign-out", "recover")]
    assert {str(one) for one in shown} == {str(shown[0])}
    assert (shown[0]["passkeys"], shown[0]["sessions"]) == ([], [])
    assert team.refused("people", "recover", TEAM.upper()) == "own_recovery"
    assert team.refused("people", "show", "nobody") == "validation_failed"


@pytest.mark.parametrize("verb", ["add", "remove"])
@pytest.mark.parametrize("email", ["", "nobody", "a b@example.com"])
def test_malformed_staff_addresses_are_refused(team, verb, email):
    """A malformed address is reported as a fault of its field."""
    code, answer = team.answer("staff", verb, email)
    assert (code, answer["code"]) == (1, "validation_failed")
    assert set(answer["details"]["fieldErrors"]) == {"email"}
