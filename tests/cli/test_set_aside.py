"""`claim-ledger audit set-aside` and `take-back` on an installation without other processes."""

import json

from tests.world import TEAM

HIDE = """
select accounts.set_aside_events(array_agg(append_id))
from accounts.pending join accounts.events using (append_id) where topic = 'PartnerApplied'
"""
NUMBERED = """
select count(*) from accounts.log join accounts.events using (append_id)
where topic = 'PartnerApplied'
"""

TAKE_BACK = ("audit", "take-back", "--ledger", "accounts")


def test_what_was_set_aside_is_listed_and_taken_back(as_named, owner):
    """By somebody of the team, who says why; with its number it is in the log."""

    def told(*arguments):
        done = as_named("audit", *arguments, STAFF=TEAM)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    as_named("staff", "add", TEAM)
    as_named("partners", "add", "P", "--email", "p@example.com", STAFF=TEAM)
    owner.execute(HIDE)
    (hidden,) = told("set-aside", "--ledger", "accounts")["events"]
    assert (hidden["ledger"], hidden["topic"], hidden["version"]) == (
        "accounts",
        "PartnerApplied",
        1,
    )
    assert hidden["is_ours"]
    number = str(hidden["set_aside_id"])
    taken = told("take-back", number, "--ledger", "accounts", "--reason", "hidden", "--yes")
    assert (taken["stream"], taken["topic"]) == (hidden["stream"], "PartnerApplied")
    assert owner.execute(NUMBERED).fetchall() == [(1,)]
    (listed,) = told("set-aside", "--ledger", "accounts")["events"]
    assert listed == hidden | {"taken_back_at": taken["taken_back_at"]}
    assert (hidden["mac"], hidden["taken_back_at"], bool(taken["taken_back_at"])) == (
        "holds",
        None,
        True,
    )
    again = as_named(*TAKE_BACK, number, "--reason", "again", "--yes", STAFF=TEAM)
    assert (again.returncode, "it was taken back already" in again.stdout) == (1, True)
    (accounts, *_) = json.loads(as_named("projections", "status", STAFF=TEAM).stdout)["ledgers"]
    assert (accounts["set_aside"], accounts["set_aside_lately"]) == (1, 0)
