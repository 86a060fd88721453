"""`claim-ledger audit history`, `audit trace` and `projections retry`, on a running dev."""

import io
from uuid import uuid4

import click
import psycopg
import pytest

from service.cli.audit import evidence_file
from service.evidence.export.format import CheckpointLine
from tests.protections import put_back, take_off
from tests.world import TEAM, claim_body

STATE = """
select state from live.events
where topic = 'ClaimStageChanged' and position(%s::bytea in state) > 0
"""
SET_STATE = """
update live.events set state = %s
where topic = 'ClaimStageChanged' and position(%s::bytea in state) > 0
"""
PLACE = """
select position, originator_id from live.log join live.events using (append_id)
where topic = 'ClaimStageChanged' and position(%s::bytea in state) > 0
"""


@pytest.fixture(scope="module")
def claim(team, demo):
    """Return the ids of a claim with a message, which staff has moved, and of its request."""
    body = claim_body(demo["entity_id"], f"case-{uuid4().hex}", message="Please help.")
    answer = team.call(demo["live_key"], "POST", "/claims", json=body)
    claim_id = answer.json()["claim_id"]
    team.move(claim_id, "negotiation")
    return claim_id, answer.headers["X-Request-Id"], answer.json()["message_id"]


@pytest.fixture
def owner(team):
    """Return a connection of the owner once activity has caught up."""
    team.wait_for_followers()
    with psycopg.connect(team.dev.facts["database_url"], autocommit=True) as connection:
        yield connection


def topics(answer):
    """Return the topics of what happened, in order."""
    return [event["topic"] for event in answer["events"]]


def test_a_claims_history_shows_each_event(team, demo, claim):
    """Each event has its position, time, actor, request and its unencrypted fields."""
    claim_id, request_id, message_id = claim
    answer = team.do("audit", "history", claim_id, "--ledger", "live")
    created, message, moved = answer["events"]
    assert topics(answer) == ["ClaimCreated", "FirstMessagePosted", "ClaimStageChanged"]
    assert {event["ledger"] for event in answer["events"]} == {"live"}
    assert created["actor"].startswith("partner:ptn_")
    assert created["request_id"] == message["request_id"] == request_id
    assert created["data"]["entity_id"] == demo["entity_id"]
    assert (created["personal"], message["personal"]) == ({"details": "sealed"}, {"text": "sealed"})
    assert message["data"]["message_id"] == message_id
    staff = {one["email"]: one["staff_id"] for one in team.do("staff", "list")["staff"]}
    assert (moved["actor"], moved["data"]["stage"]) == (f"staff:{staff[TEAM]}", "negotiation")
    assert answer["is_cut"] is False
    assert "Please help." not in str(answer)


def test_a_partners_history_spans_the_ledgers(team):
    """The account, live links and the sandbox form one timeline unless a ledger is chosen."""
    partner_id, live, _ = team.partner()
    team.link(live)
    everywhere = team.do("audit", "history", partner_id)["events"]
    asked = team.do("audit", "history", partner_id, "--ledger", "live")["events"]
    assert {event["ledger"] for event in everywhere} == {"accounts", "live", "test"}
    assert everywhere[0]["topic"] == "PartnerApplied"
    assert sorted(event["at"] for event in everywhere) == [event["at"] for event in everywhere]
    assert [event["topic"] for event in asked] == ["ConnectLinkIssued"]


def test_a_link_an_entity_and_a_key_have_histories(team):
    """The history of each is found by its id."""
    _, live, _ = team.partner()
    entity_id = team.entity()
    team.connect(team.link(live), entity_id)
    entity = team.do("audit", "history", entity_id)
    (link_id,) = {one["data"]["link_id"] for one in entity["events"] if "link_id" in one["data"]}
    link = topics(team.do("audit", "history", link_id))
    key = topics(team.do("audit", "history", live.split(".")[1]))
    assert topics(entity)[0] == "EntityRegistered"
    assert set(topics(entity)[1:]) == {"ConnectLinkRedeemed", "EntityConnected"}
    assert (link, key) == (["ConnectLinkIssued", "ConnectLinkRedeemed"], ["ApiKeyIssued"])


def test_a_trace_shows_everything_a_request_caused(team, claim):
    """All events that one request caused are shown, whatever their subject."""
    _, request_id, _ = claim
    traced = team.do("audit", "trace", request_id)
    assert (traced["id"], topics(traced)) == (request_id, ["ClaimCreated", "FirstMessagePosted"])


def test_a_long_history_is_cut_at_its_beginning(team, claim):
    """The newest events are shown, with a note that there are more."""
    answer = team.do("audit", "history", claim[0], "--limit", "1")
    assert (topics(answer), answer["is_cut"]) == (["ClaimStageChanged"], True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("history", "clm_00000000000000000000000000"),
        ("trace", "req_00000000000000000000000000"),
        ("history", 'quoted " and \\ and é'),
    ],
    ids=" ".join,
)
def test_an_unknown_id_is_refused(team, arguments):
    """No ledger knows the id."""
    assert team.refused("audit", *arguments) == "not_found"


def test_what_the_index_lost_is_not_called_unknown(team, demo, claim, owner, tmp_path):
    """The log has it: the refusal says what was lost, and how it comes back."""
    kept = owner.execute("delete from live.activity returning *").fetchall()
    out = str(tmp_path / "out")
    asked = (
        ("history", claim[0], "--ledger", "live"),
        ("history", claim[0], "--ledger", "live", "--prove", out),
        ("trace", claim[1]),
        ("export", "--entity", demo["entity_id"], "--out", out),
    )
    told = [team.answer("audit", *one) for one in asked]
    unknown = team.answer("audit", "history", "clm_00000000000000000000000000")
    with owner.cursor() as cursor:
        cursor.executemany("insert into live.activity values (%s, %s, %s, %s, %s, %s)", kept)
    assert [code for code, _ in told] == [1] * len(asked)
    for _, answer in told:
        assert "`projections rebuild activity` makes it anew" in answer["message"]
    assert "No event of" in unknown[1]["message"]


def test_an_id_of_another_ledger_is_refused(team, claim):
    """A live claim has no history in the test ledger."""
    assert team.refused("audit", "history", claim[0], "--ledger", "test") == "not_found"


def test_an_unreadable_event_is_in_the_history(team, claim, owner):
    """Damaged evidence is shown, not left out, and named."""
    claim_id = claim[0].encode()
    (before,) = owner.execute(STATE, (claim_id,)).fetchone()
    with team.unverified("live"):
        take_off(owner, "live.events")
        owner.execute(SET_STATE, (b"{" + claim_id, claim_id))
        code, answer = team.answer("audit", "history", claim[0], "--ledger", "live")
        owner.execute(SET_STATE, (before, claim_id))
        put_back(owner, "live.events")
    damaged = answer["events"][-1]
    assert (code, [one["position"] for one in answer["faults"]]) == (1, [damaged["position"]])
    assert (damaged["topic"], damaged["at"]) == ("ClaimStageChanged", None)
    assert damaged["data"] == "unreadable: the stored event is damaged"


def test_an_event_that_is_gone_is_in_the_history(team, claim, owner):
    """What is left of it is its place in the log: that is shown, and a fault."""
    owner.execute("create temporary table kept as select * from live.events where false")
    removed = b"with gone as (delete from live.events where topic = 'ClaimStageChanged' and "
    held = b"position(%s::bytea in state) > 0 returning *) insert into kept select * from gone"
    with team.unverified("live"):
        take_off(owner, "live.events")
        owner.execute(removed + held, (claim[0].encode(),))
        code, answer = team.answer("audit", "history", claim[0], "--ledger", "live")
        owner.execute("insert into live.events overriding system value select * from kept")
        put_back(owner, "live.events")
    gone = answer["events"][-1]
    assert (code, [one["position"] for one in answer["faults"]]) == (1, [gone["position"]])
    assert (gone["topic"], gone["at"], gone.get("fault")) == ("ClaimStageChanged", None, None)
    assert gone["data"] == "gone: only its place in the log is left"


def test_a_fault_is_a_fault_beside_a_proof(team, demo, claim, owner, tmp_path):
    """The exit code says so, too: the events are proved by another checkpoint than they rest on."""
    team.do("audit", "checkpoint", "--ledger", "live")
    team.call(demo["live_key"], "POST", "/connect-requests", json={"partner_user_id": "u"})
    team.do("audit", "checkpoint", "--ledger", "live")
    kept = owner.execute("select origin, size, note from live.checkpoints").fetchall()
    with team.unverified("live"):
        owner.execute("alter table live.checkpoints disable trigger append_only")
        owner.execute(
            "update live.checkpoints set note = 'junk' where size < (select size from live.head)"
        )
        prove = ("--prove", str(tmp_path / "proof"))
        code, answer = team.answer("audit", "history", claim[0], "--ledger", "live", *prove)
        for origin, size, note in kept:
            back = "update live.checkpoints set note = %s where origin = %s and size = %s"
            owner.execute(back, (note, origin, size))
        owner.execute("alter table live.checkpoints enable always trigger append_only")
    assert (code, len(answer["faults"])) == (1, 1)
    assert team.do("audit", "history", claim[0], *prove, "--force")["file"] == prove[1]


def test_no_proof_is_written_that_no_reader_takes(monkeypatch):
    """It says how large it would be, and writes nothing."""
    file, line = io.BytesIO(), CheckpointLine(checkpoint="x" * 100)
    monkeypatch.setattr(evidence_file, "LINE_BYTES_MAX", 100)
    with pytest.raises(click.ClickException, match="a file may have 100"):
        evidence_file.write_whole(file, line)
    assert file.getvalue() == b""


def test_another_claims_stream_is_not_this_claim(team, demo, owner):
    """Where a row of the read model names it, that claim is not shown, moved or erased.

    This one is erased, since the log has it.
    """
    bodies = [claim_body(demo["entity_id"], f"case-{uuid4().hex}") for _ in range(2)]
    ours, other = (
        team.call(demo["live_key"], "POST", "/claims", json=body).json()["claim_id"]
        for body in bodies
    )
    owner.execute(
        "update live.claim_list as l set stream_id = o.stream_id from live.claim_list as o"
        " where l.claim_id = %s and o.claim_id = %s",
        (ours, other),
    )
    codes = [team.refused("claims", "show", ours), team.refused("claims", "move", ours, "closed")]
    erased = team.do("privacy", "erase", "--claim", ours, "--reason", "x", "--yes")
    team.do("projections", "rebuild", "claim_list", "--ledger", "live")  # others share this dev
    assert codes == ["claim_not_found"] * 2
    assert (erased["claim_id"], erased["keys_destroyed"]) == (ours, 1)
    shown = [team.do("claims", "show", one)["personal"] for one in (ours, other)]
    assert shown == ["erased", "readable"]


def test_an_event_beside_log_and_queue_is_told_as_one_that_stays(team, claim, owner):
    """Nothing sets it aside: whoever is told to try again would do so for ever."""
    _, stream_id = owner.execute(PLACE, (claim[0].encode(),)).fetchone()
    put = """
    insert into live.events (originator_id, originator_version, topic, state)
    select originator_id, max(originator_version) + 1, 'ClaimStageChanged', '{}'
    from live.events where originator_id = %s group by 1 returning append_id
    """
    with team.unverified("live"):
        take_off(owner, "live.events")
        (append_id,) = owner.execute(put, (stream_id,)).fetchone()
        code, answer = team.answer("claims", "show", claim[0])
        owner.execute("delete from live.events where append_id = %s", (append_id,))
        put_back(owner, "live.events")
    assert code == 1
    assert "in neither log nor queue, stays" in answer["message"]


def test_a_retry_applies_parked_streams(team, claim, owner):
    """Streams that now apply are applied; the rest is listed, and the exit code is 1."""
    position, stream_id = owner.execute(PLACE, (claim[0].encode(),)).fetchone()
    park = "insert into live.parked values ('activity', %s, %s, 'KeyError', now())"
    owner.execute(park, (position, stream_id))
    code, failed = team.answer("projections", "retry", "activity", "--ledger", "live")
    # Its rows are there already, which the read model refuses to have twice.
    owner.execute("delete from live.activity where position = %s", (position,))
    unknown = team.refused("projections", "retry", "activity", "--position", str(10**9))
    done = team.do("projections", "retry", "activity", "--position", str(position))
    rows = "select count(*) from live.activity where position = %s"
    assert (code, failed["applied"], unknown) == (1, 0, "not_found")
    (left,) = failed["parked"]
    assert (left["position"], left["topic"]) == (position, "ClaimStageChanged")
    assert left["error"] == "UniqueViolationError"
    assert done == {"applied": 1, "parked": []}
    assert owner.execute(rows, (position,)).fetchone() == (2,)


def test_an_unknown_read_model_is_wrong_usage(team):
    """The error lists the existing names, of the ledger that was given alone."""
    done = team.raw("projections", "retry", "claim_list")
    assert (done.returncode, "there are activity" in done.stderr) == (2, True)
    of_live = team.raw("projections", "retry", "webhooks", "--ledger", "live")
    names = "activity, documents, mail, partner_events, processing"
    said = f"Nothing named 'webhooks' parks events in live; there are {names}."
    assert (of_live.returncode, said in of_live.stderr) == (2, True)


def test_a_retry_of_a_queue_says_that_it_queued(team, claim, owner):
    """What is done with it, the worker finds out later."""
    del claim  # its message is what was handed over
    place = "select position, originator_id from live.log join live.events using (append_id)"
    (position, stream_id) = owner.execute(
        f"{place} where topic = 'FirstMessagePosted' order by position desc limit 1"
    ).fetchone()
    park = "insert into live.parked values ('processing', %s, %s, 'Refused', now())"
    owner.execute(park, (position, stream_id))
    done = team.raw("projections", "retry", "processing", "--ledger", "live")
    assert (done.returncode, done.stdout.partition("\n")[0]) == (
        0,
        "OK: 1 event of processing queued again, nothing is parked",
    )


def test_hashes_of_secrets_are_left_out(team):
    """Hashes of keys and links are shown neither to people nor to programs."""
    partner_id, live, _ = team.partner()
    team.link(live)
    answer = team.do("audit", "history", partner_id)
    fields = {name for event in answer["events"] for name in event["data"]}
    assert not fields & {"secret_hash", "token_hash"}
    assert {"ApiKeyIssued", "ConnectLinkIssued"} <= set(topics(answer))


def test_people_get_a_block_per_event(team, claim):
    """There is one field per line, nested data included, and long hashes are shortened."""
    shown = team.raw("audit", "history", claim[0], "--ledger", "live").stdout
    blocks = shown.split("\n\n")
    assert len(blocks) == 5  # what they rest on stands before them
    assert max(map(len, shown.splitlines())) < 100
    created = dict(line.split(None, 1) for line in blocks[2].splitlines())
    assert (created["topic"], created["data.claim_id"]) == ("ClaimCreated", claim[0])
    (hashed,) = {value for name, value in created.items() if name.endswith("fingerprint")}
    assert hashed.endswith("…")
