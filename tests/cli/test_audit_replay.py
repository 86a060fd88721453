"""`claim-ledger audit replay` on a running dev."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from service.cli.instant import instant
from service.cli.output import ROWS_SHOWN_MAX, Spool, show
from tests.cli.team import mailbox
from tests.dev_process import PROGRAM, environment, until
from tests.small_files import files_of_at_most
from tests.world import claim_body

MOMENT = datetime(2026, 3, 1, 10, 15, 30, tzinfo=UTC)


def test_a_replay_shows_a_claim_at_each_of_its_stages(team, demo):
    """By position and by time the claim is in its stage of then; the stock recorder agrees.

    The answer says which position, when that event happened, and how long the log is.
    """
    claim_id = _claim(team, demo, "replayed")
    created = _replay(team, "--claim", claim_id)
    team.move(claim_id, "negotiation")
    moved = _replay(team, "--claim", claim_id, stage="negotiation")
    then = _do(team, "--claim", claim_id, "--position", str(created["position"]))
    by_time = _do(team, "--claim", claim_id, "--at", created["at"])
    checked = _do(team, "--claim", claim_id, "--independent", "--at", created["at"])
    for one in (created, then, by_time):  # a checkpoint may have come meanwhile
        rests = one.pop("rests_on")
        assert bool(rests["origin"]) == bool(rests["size"]), rests
    assert "up to the position of the last one that says it happened by then" in by_time.pop("rule")
    just_before = datetime.fromisoformat(created["at"]) - timedelta(milliseconds=1)
    assert [one["stage"] for one in created["claims"]] == ["triage"]
    assert created["position"] < moved["position"] == moved["size"]
    assert then == by_time == created | {"size": moved["size"]}
    assert (checked["agrees"], checked["independent_count"], checked["differing"]) == (True, 1, [])
    assert checked["claims"] == created["claims"]
    assert created["counts"]["entities"] == created["counts"]["connections"] == 1
    assert created["claims"][0]["partner_claim_id"] == "replayed"
    refused = ("--claim", claim_id, "--at", just_before.isoformat())
    assert team.refused("audit", "replay", *refused) == "claim_not_found"


def test_every_ledger_replays(team, demo):
    """Live and test show the partners' data, accounts the partners; no secret is shown."""
    live = _do(team, "--ledger", "live", "--independent")
    test = _do(team, "--ledger", "test", "--independent")
    accounts = _do(team, "--ledger", "accounts", "--partner", demo["partner_id"])
    assert live["agrees"]
    assert test["agrees"]
    assert [live["counts"][of] for of in live["counts"]] == [len(live[of]) for of in live["counts"]]
    assert test["counts"]["entities"] >= 3
    assert [one["partner_id"] for one in accounts["partners"]] == [demo["partner_id"]]
    assert {one["partner_id"] for one in accounts["api_keys"]} == {demo["partner_id"]}
    shown = {name for one in (live, test, accounts) for name in re.findall(r"'(\w+)':", str(one))}
    assert {"partner_id", "entity_id", "claim_id"} <= shown
    assert not any("hash" in name for name in shown)


def test_filters_select_connected_facts(team, demo):
    """An entity's replay has its connections, a partner's its claims; unknown ids are refused."""
    entity = _do(team, "--entity", demo["entity_id"])
    partner = _do(team, "--partner", demo["partner_id"])
    nobody = team.do("partners", "add", "P", "--email", mailbox())["partner_id"]
    assert [one["entity_id"] for one in entity["entities"]] == [demo["entity_id"]]
    assert demo["partner_id"] in {one["partner_id"] for one in entity["connections"]}
    assert {one["partner_id"] for one in partner["connections"]} == {demo["partner_id"]}
    assert set(_do(team, "--partner", nobody)["counts"].values()) == {0}
    assert team.refused("audit", "replay", "--claim", "clm_x") == "claim_not_found"
    assert team.refused("audit", "replay", "--entity", "ent_x") == "entity_not_found"
    assert team.refused("audit", "replay", "--partner", "ptn_x") == "partner_not_found"


def test_people_get_a_table(team, demo):
    """Without `--json` there is a line for each fact and a table for each kind of thing."""
    shown = team.raw("audit", "replay", "--entity", demo["entity_id"])
    assert shown.returncode == 0, shown.stderr
    assert f"  {demo['entity_id']}" in shown.stdout
    assert {"entities", "claims", "connections"} <= set(shown.stdout.split("\n"))


def test_a_time_is_not_rounded_up():
    """Events later than the given time are not included by rounding."""
    for text, microsecond in (
        ("2026-03-01T10:15:30.1239999999Z", 123999),
        ("2026-03-01T10:15:30.99999999+01:00", 999999),
        ("2026-03-01T10:15:30.5Z", 500000),
    ):
        found = instant(text)
        assert (found.second, found.microsecond) == (30, microsecond)


def test_gaps_and_altered_events_are_reported(team):
    """Also before the independent software reads the log: a missing position, an altered event."""
    team.do("audit", "checkpoint", "--ledger", "test")
    team.wait_for_followers()  # whoever is behind would go on from the far position
    url = team.dev.facts["database_url"]
    with team.unverified("test"), psycopg.connect(url, autocommit=True) as owner:
        for table in ("log", "events"):
            owner.execute(f"alter table test.{table} disable trigger append_only")
        owner.execute("alter table test.log drop constraint log_position_check")
        for change, back, said in (
            (
                "update test.log set position = 1000000 where position = 1",
                "update test.log set position = 1 where position = 1000000",
                ["the log ends at 1000000, and its head says"],
            ),
            (
                "update test.log set position = -position where position = 1",
                "update test.log set position = 1 where position = -1",
                ["position 1: the log has no such event"],
            ),
            (
                "update test.events set topic = 'X' || topic where topic = 'LineageBegun'",
                "update test.events set topic = substr(topic, 2) where topic = 'XLineageBegun'",
                [  # whichever is looked at first
                    "'XLineageBegun' is no event of this ledger",
                    "the event is not the one that was hashed there",
                    "its stored checkpoint is of a lineage that the log has lost",
                    "A stream has an event that this service did not write",
                ],
            ),
        ):
            owner.execute(change)
            for more in ([], ["--independent"]):
                code, answer = team.answer("audit", "replay", "--ledger", "test", *more)
                assert code == 1
                assert any(one in answer["message"] for one in said), answer
            owner.execute(back)
        owner.execute("alter table test.log add constraint log_position_check check (position > 0)")
        for table in ("log", "events"):
            owner.execute(f"alter table test.{table} enable always trigger append_only")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--at", "yesterday"),
        ("--at", "2026-03-01T10:15:30"),
        ("--at", "2026-02-30T10:15:30Z"),
        ("--at", "0001-01-01T00:00:00+10:00"),
        ("--at", "2026-03-01T10:15:30Z", "--position", "1"),
        ("--position", "-1"),
        ("--claim", "x", "--entity", "y"),
        ("--ledger", "accounts", "--claim", "x"),
        ("--ledger", "accounts", "--independent"),
    ],
)
def test_replay_usage_errors_exit_with_2(team, arguments):
    """A missing moment, a time without offset, or exclusive options exit with 2."""
    code, answer = team.answer("audit", "replay", *arguments)
    assert (code, answer["code"]) == (2, "validation_failed")


def test_the_beginning_and_the_future(team):
    """Position 0 and a time before the log give nothing; a position past its end is refused."""
    empty = _do(team, "--position", "0")
    assert (empty["position"], empty["at"], set(empty["counts"].values())) == (0, None, {0})
    before = _do(team, "--at", "1999-12-31T23:59:59+01:00")
    assert {"rule", *empty} == set(before)
    assert before["size"] >= empty["size"]
    assert [before[name] for name in ("position", "counts")] == [0, empty["counts"]]
    assert team.refused("audit", "replay", "--position", str(10**12)) == "validation_failed"
    latest = _do(team, "--at", "2999-01-01T00:00:00Z")
    assert latest["position"] == latest["size"]


@pytest.mark.parametrize("text", ['a "quoted"\nline', "quoted: \u202eéß\U0001f600"])
@pytest.mark.parametrize("rows", [0, 1, 3, ROWS_SHOWN_MAX + 2])
def test_a_spooled_table_is_printed_in_full_to_programs(capsys, rows, text):
    """Its JSON equals that of a list; people get the first rows and the number of the rest."""
    printed, table = [], []
    for as_json in (True, False):
        spool = Spool()
        for number in range(rows):
            spool.add({"number": number, "text": text, "at": None if number % 2 else MOMENT})
        show({"ledger": "live", "claims": spool, "more": [1], "at": None}, as_json=as_json)
        (printed if as_json else table).append(capsys.readouterr().out)
    assert printed[0].count("\n") == 1
    assert printed[0].isascii()
    assert json.loads(printed[0]) == {
        "ledger": "live",
        "claims": [
            {
                "number": number,
                "text": text,
                "at": None if number % 2 else "2026-03-01T10:15:30.000Z",
            }
            for number in range(rows)
        ],
        "more": [1],
        "at": None,
    }
    assert table[0].count("quoted") == min(rows, ROWS_SHOWN_MAX)
    assert ("and 2 more: `--json` has them all" in table[0]) == (rows > ROWS_SHOWN_MAX)


@pytest.mark.parametrize("room", [0, 100], ids=["none at all", "for some of them"])
def test_rows_without_a_place_are_named(team, demo, room):
    """Before any of the answer is printed, and not as a fault of the database."""
    _claim(team, demo, f"no-place-{room}")
    with files_of_at_most(room):
        done = subprocess.run(
            [PROGRAM, "audit", "replay", "--json", "--data-dir", team.dev.data_dir],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "")
    said = json.loads(done.stdout)["message"]
    assert "no place for the answer's rows" in said
    assert "TMPDIR" in said


def _claim(team, demo, reference: str) -> str:
    body = claim_body(demo["entity_id"], reference)
    return team.call(demo["live_key"], "POST", "/claims", json=body).json()["claim_id"]


def _do(team, *arguments: str):
    return team.do("audit", "replay", *arguments)


def _replay(team, *arguments: str, stage: str = "triage"):
    """Replay once the dev has numbered the claim's last event."""
    found = {}

    def numbered() -> bool:
        code, answer = team.answer("audit", "replay", *arguments)
        found.update(answer)
        return code == 0 and answer["claims"][0]["stage"] == stage

    until(numbered)
    return found
