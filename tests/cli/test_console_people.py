"""The team's commands for a partner's people: members, rolled keys, declined applications."""

from tests.cli.team import mailbox

UNKNOWN_PARTNER = "ptn_00000000000000000000000000"


def test_members_are_added_listed_and_removed(team):
    """People are added once and listed with their addresses; all but the last can be removed."""
    partner_id, _, _ = team.partner()
    one, two = mailbox(), mailbox()
    team.do("members", "add", partner_id, "--email", one)
    team.do("members", "add", partner_id, "--email", one)
    added = team.do("members", "add", partner_id, "--email", two)
    first, second = added["members"]
    assert [first["email"], second["email"]] == [one, two]
    assert team.do("members", "list", partner_id) == added
    left = team.do("members", "remove", partner_id, first["member_id"])
    assert left["members"] == [second]
    assert team.refused("members", "remove", partner_id, second["member_id"]) == "last_member"
    assert team.refused("members", "remove", partner_id, "mem_x") == "member_not_found"
    assert team.refused("members", "add", partner_id, "--email", "no") == "validation_failed"
    pending = team.do("partners", "add", "Books", "--email", one)["partner_id"]
    (member,) = team.do("members", "add", pending, "--email", one)["members"]
    assert team.do("members", "remove", pending, member["member_id"])["members"] == []
    assert team.refused("members", "add", UNKNOWN_PARTNER, "--email", one) == "partner_not_found"
    assert team.refused("members", "list", UNKNOWN_PARTNER) == "partner_not_found"


def test_a_rolled_key_works_until_its_end(team):
    """The new key works at once; the old one until the given time, or no longer."""
    partner_id, live, test = team.partner()
    old_live, old_test = (token.split(".")[1] for token in (live, test))
    later = team.do("keys", "roll", old_live, "--overlap", "1h")
    now = team.do("keys", "roll", old_test, "--overlap", "now")
    codes = [
        team.call(token, "GET", "/claims", params={"entity_id": "ent_x"}).json()["code"]
        for token in (live, later["token"], test, now["token"])
    ]
    assert codes == ["entity_not_found", "entity_not_found", "auth_revoked", "entity_not_found"]
    assert (later["partner_id"], later["mode"], now["mode"]) == (partner_id, "live", "test")
    assert later["old"]["key_id"] == old_live
    assert later["old"]["revoked_at"] > now["old"]["revoked_at"]
    assert team.refused("keys", "roll", old_live) == "key_state"
    assert team.refused("keys", "roll", "key_x") == "key_not_found"


def test_declining_a_partner_takes_a_reason(team):
    """A reason is optional; declining again changes nothing."""
    partner_id = team.do("partners", "add", "P", "--email", mailbox())["partner_id"]
    before = team.events()
    declined = team.do("partners", "decline", partner_id, "--reason", "No imprint.")
    again = team.do("partners", "decline", partner_id, "--reason", "Another.")
    assert (declined["status"], again["status"]) == ("declined", "declined")
    assert team.events() - before == 1
