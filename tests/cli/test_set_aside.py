"""`claim-ledger audit set-aside`, `take-back` and `bind` on an installation of no processes."""

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


def test_a_key_that_does_not_sign_yet_retires_no_other(as_named, owner):
    """`audit bind` says when it will; afterwards it retires the earlier key, once."""
    as_named("staff", "add", TEAM)

    def bind():
        # Of a log without events: in the others, some are by the earlier key, and too young.
        return as_named("audit", "bind", "--ledger", "live", STAFF=TEAM, as_json=False)

    before = bind()
    drawn = json.loads(as_named("keys-at-rest", "rotate-event-key", STAFF=TEAM).stdout)
    early = bind()
    waits = as_named("audit", "bind", "--ledger", "live", STAFF=TEAM)
    owner.execute("update accounts.event_keys set signs_from = now() - interval '1 hour'")
    late, again = bind(), bind()
    assert (before.returncode, before.stdout.startswith("OK: nothing to do")) == (0, True)
    assert early.returncode == 1
    said = f"WRONG: event key 2 does not sign before {drawn['signs_from']}, and no earlier one"
    assert early.stdout.startswith(said)
    facts = json.loads(waits.stdout)
    assert (waits.returncode, facts["waits_for_event_key"]) == (1, 2)
    assert facts["signs_from"] == drawn["signs_from"]
    assert (late.returncode, again.returncode) == (0, 0)
    assert late.stdout.startswith("OK: later events of live need a MAC")
    assert again.stdout.startswith("OK: nothing to do")
    retired = "select count(*) from live.events where topic = 'EventsBound'"
    assert owner.execute(retired).fetchone() == (1,)
