"""`claim-ledger staff` on a running service."""

import pytest

from tests.cli.team import mailbox


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


@pytest.mark.parametrize("verb", ["add", "remove"])
@pytest.mark.parametrize("email", ["", "nobody", "a b@example.com"])
def test_malformed_staff_addresses_are_refused(team, verb, email):
    """A malformed address is reported as a fault of its field."""
    code, answer = team.answer("staff", verb, email)
    assert (code, answer["code"]) == (1, "validation_failed")
    assert set(answer["details"]["fieldErrors"]) == {"email"}
