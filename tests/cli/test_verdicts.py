"""What people read first: whether all is well, or why a command was refused."""

import json
import subprocess
from datetime import timedelta

import pytest

from service.cli import documents, keys_at_rest, storage
from service.cli.audit.verify import answer_of
from service.cli.output import show
from service.cli.projections import rebuild
from service.cli.verdict import Findings, ago, listed
from service.core.counted import counted
from service.evidence.verdict import Fault, Verdict
from service.ledger.following.status import SET_READ_ONLY
from tests import runbook
from tests.dev_process import environment
from tests.world import TEAM


def test_a_verdict_comes_first(as_named, database_url, owner):
    """One line for people, before the details; a program is given the facts alone.

    Where PostgreSQL refuses to write, that is what it begins with, until what the runbook has.
    """
    installed = as_named("staff", "add", TEAM)
    assert installed.returncode == 0, installed.stdout
    told = as_named("projections", "status", as_json=False, STAFF=TEAM)
    first, second, *_ = told.stdout.splitlines()
    assert (first.partition(":")[0], second) == (("OK", "WRONG")[told.returncode], "")
    answer = json.loads(as_named("projections", "status", STAFF=TEAM).stdout)
    assert "verdict" not in answer
    assert {one["read_only"] for one in answer["ledgers"]} == {None}
    owner.execute(
        f'alter database "{owner.info.dbname}" set default_transaction_read_only = on'.encode()
    )
    told = as_named("projections", "status", as_json=False, STAFF=TEAM)
    assert told.returncode == 1
    assert told.stdout.startswith(f"WRONG: accounts: {SET_READ_ONLY}; live: {SET_READ_ONLY}; ")
    subprocess.run(
        ["bash", "-eu"],
        input=runbook.block("bash", "export PGOPTIONS"),
        env=environment(DATABASE_URL=database_url),
        text=True,
        check=True,
    )
    told = as_named("projections", "status", as_json=False, STAFF=TEAM)
    assert SET_READ_ONLY not in told.stdout


def test_the_verdict_of_a_verification_says_what_it_rests_on(capsys):
    """Ledgers, events and checkpoints; or what is wrong in which ledger, and exits with 1."""
    good = Verdict.of("live", 19, b"", published=2)
    answer = answer_of(
        [good, Verdict.of("test", 1, b"", published=1)], "last checkpoint signed just now"
    )
    show(answer, as_json=False)
    text = capsys.readouterr().out
    first, second, *_ = text.splitlines()
    assert first == (
        "OK: 2 ledgers, 20 events, last checkpoint signed just now, compared with 3 published ones"
    )
    assert second == ""
    assert "set_aside" not in text
    assert text.count("lost_checkpoints") == 2  # of the ledger that is shown, and of all
    show(answer, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["set_aside"]) == (True, 0)
    bad = answer_of([good, Verdict.of("test", 1, b"", fault=Fault(2, "an event is gone"))])
    assert isinstance(bad, Findings)
    assert bad.verdict == "WRONG: test: an event is gone"


def test_a_verdict_without_the_keys_says_whose_word_it_takes():
    """Where events wait by which somebody could act."""
    answer = answer_of([Verdict.of("live", 1, b"").with_actors(None, 0, 1)])
    assert answer["unproven_actors"] == 1
    assert answer.verdict.endswith("who could act is also from 1 event of unknown origin")


MODEL = {"ledger": "live", "name": "claim_list", "rows": 7, "parked_events": 0}
KEYS = {"events_lost": 0, "events_unfit": 0, "keys_faulty": 0}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (documents.verified_answer(3, 1, []), "OK: 3 documents compared, 1 of them erased"),
        (
            documents.verified_answer(
                1, 0, [{"mode": "live", "document_id": "doc_1", "fault": "missing"}]
            ),
            "WRONG: doc_1 (live): missing (1 document compared, 0 of them erased)",
        ),
        (
            storage.answer_of(
                [
                    {"mode": "live", "check": "versioning", "result": "ok"},
                    {"mode": "live", "check": "retention", "result": "note"},
                ]
            ),
            "OK: 2 checks passed, 1 note",
        ),
        (
            storage.answer_of([{"mode": "test", "check": "versioning", "result": "failed"}]),
            "WRONG: test: versioning",
        ),
        (
            keys_at_rest.verified_answer(KEYS, ["live", "test"]),
            "OK: every key of 2 ledgers opens what is under it",
        ),
        (
            keys_at_rest.verified_answer(KEYS | {"keys_faulty": 2}, ["live"]),
            "WRONG: 2 keys that are not what they are stored as",
        ),
        (
            rebuild.verified_answer(
                {"verified": [MODEL | {"differences": 0, "put_aside": 0}], "put_aside": []}
            ),
            "OK: 1 read model is as the log has it, 7 rows",
        ),
        (
            rebuild.verified_answer(
                {"verified": [MODEL | {"differences": 2, "put_aside": 0}], "put_aside": []}
            ),
            "WRONG: live.claim_list: 2 rows differ",
        ),
        (
            rebuild.verified_answer(
                {"verified": [MODEL | {"differences": 1, "put_aside": 0}], "put_aside": []}
            ),
            "WRONG: live.claim_list: 1 row differs",
        ),
        (
            rebuild.verified_answer(
                {"verified": [MODEL | {"differences": 0, "put_aside": 30}], "put_aside": [{}] * 20}
            ),
            "WRONG: 30 events that cannot be applied",
        ),
    ],
)
def test_each_check_says_what_it_found(answer, expected):
    """Before the details: what was looked at, or what is wrong."""
    assert answer.verdict == expected


def test_a_refusal_is_prose_for_people(team, demo):
    """In a line on stderr, with its code; every fault of a field follows."""
    del demo
    done = team.raw("claims", "show", "clm_none")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Refused: No such claim. (claim_not_found)\n"
    done = team.raw("partners", "add", "", "--email", "nobody")
    first, *faults = done.stderr.splitlines()
    assert "(validation_failed)" in first
    assert {fault.split(":")[0] for fault in faults} == {"  name", "  email"}


def test_summaries_end(team):
    """No summary of the help is cut off."""
    for group in ((), ("audit",), ("projections",), ("privacy",), ("keys-at-rest",)):
        summaries = team.raw_help(*group).partition("Commands:")[2]
        assert summaries
        assert "..." not in summaries


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "just now"),
        (0.4, "just now"),
        (1, "1 second ago"),
        (119, "1 minute ago"),
        (120, "2 minutes ago"),
        (7_300, "2 hours ago"),
        (10**9, "11,574 days ago"),
    ],
)
def test_moments_are_said_in_their_largest_unit(seconds, expected):
    """A clock that is ahead makes nothing lie in the future."""
    assert ago(timedelta(seconds=seconds)) == expected


def test_many_faults_stay_on_one_line():
    """The first ones are named and the others counted."""
    assert listed(["a", "b", "c"]) == "a; b; c"
    assert listed(["a", "b", "c", "d"]) == "a; b; c; and 1 more"
    assert listed(["One is altered.", "Two is gone."]) == "One is altered; Two is gone."
    assert (counted(1, "event"), counted(2_000, "event")) == ("1 event", "2,000 events")
    assert counted(None, "event") == "an unknown number of events"
