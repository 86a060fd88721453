"""`claim-ledger audit report`: a period, with names and proof, in three formats."""

import csv
import io
import json
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pypdfium2
import pytest
import zxingcpp
from reportlab.pdfbase import pdfmetrics

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.evidence.report.lines import Period, ReportLine, ReportSubject
from service.evidence.report.pdf import PdfWriter
from service.evidence.report.writers import Cover
from tests.world import TEAM, claim_body

ALWAYS = ("--from", "2026-01-01", "--to", "2099-12-31")
STATES = """
select l.position, e.topic
from live.log as l join live.events as e using (append_id)
where position(%s::bytea in e.state) > 0 or position(%s::bytea in e.state) > 0
order by l.position
"""
ALTER = "update live.events set state = overlay(state placing 'X' from 30) where append_id = %s"
PUT_BACK = "update live.events set state = %s where append_id = %s"
LAST = """
select append_id, state from live.events
where topic = 'ClaimStageChanged' and position(%s::bytea in state) > 0
"""


@pytest.fixture(scope="module")
def claim(team, demo):
    """Return the id of a claim that the team has moved and whose data was erased."""
    body = claim_body(demo["entity_id"], f"case-{uuid4().hex}", message="Please help.")
    claim_id = team.call(demo["live_key"], "POST", "/claims", json=body).json()["claim_id"]
    team.move(claim_id, "negotiation")
    team.do("privacy", "erase", "--claim", claim_id, "--reason", "case 17", "--yes")
    return claim_id


def report(team, path, *arguments):
    """Write a report, and return its lines."""
    answer = team.do("audit", "report", *arguments, "--out", str(path), "--force")
    assert answer["ok"]
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_partners_report_has_all_that_concerns_it(team, demo, claim, tmp_path):
    """Every event of the partner and of its claims, with names, proof and what was erased."""
    head, *lines, end = report(team, tmp_path / "r", "--partner", demo["partner_id"], *ALWAYS)
    assert (head["format"], head["partner_id"]) == ("claim-ledger report v1", demo["partner_id"])
    live = [line for line in lines if line["ledger"] == "live"]
    with psycopg.connect(demo["database_url"]) as connection:
        needles = (demo["partner_id"].encode(), claim.encode())
        expected = connection.execute(STATES, needles).fetchall()
    assert {(line["position"], line["event"]) for line in live} >= set(expected)
    assert [line["position"] for line in live] == sorted({line["position"] for line in live})
    ours = {line["event"]: line for line in live if line["data"].get("claim_id") == claim}
    assert ours["ClaimStageChanged"]["actor_name"] == TEAM
    assert ours["ClaimStageChanged"]["data"]["stage"] == "negotiation"
    assert ours["ClaimCreated"]["actor_name"].startswith(head["name"])
    assert ours["ClaimCreated"]["personal"] == {"details": "erased"}
    assert "Please help." not in str(lines)
    key = NoteKey.parse(team.do("audit", "public-key")["keys"][0]["public_key"])
    for proof in end["rests_on"]:
        if proof["checkpoint"] is not None:
            size = Checkpoint.open(proof["checkpoint"], [key]).size
            assert size >= proof["last_position"] > proof["after_position"]


def test_periods_that_follow_each_other_repeat_nothing(team, claim, tmp_path):
    """What is before a moment and what is after it make the whole, in every format."""
    _, *whole, _ = report(team, tmp_path / "whole", "--claim", claim, *ALWAYS)
    (middle,) = (one["at"] for one in whole if one["event"] == "ClaimStageChanged")
    _, *first, _ = report(
        team, tmp_path / "first", "--claim", claim, "--from", "2026-01-01", "--to", middle
    )
    path = tmp_path / "rest"
    arguments = ("--claim", claim, "--from", middle, "--to", "2099-12-31", "--format", "csv")
    team.do("audit", "report", *arguments, "--out", str(path))
    rest = list(csv.DictReader(io.StringIO(path.read_text("utf-8-sig"))))
    found = [(one["ledger"], int(one["position"])) for one in (*first, *rest)]
    assert sorted(found) == sorted((one["ledger"], one["position"]) for one in whole)
    assert first
    assert rest


def test_a_period_may_be_all_of_time(team, claim, tmp_path):
    """From the first day that there is to the last one."""
    _, *usual, _ = report(team, tmp_path / "usual", "--claim", claim, *ALWAYS)
    ever = ("--from", "0001-01-01", "--to", "9999-12-31")
    _, *whole, _ = report(team, tmp_path / "ever", "--claim", claim, *ever)
    assert whole == usual


def test_a_long_word_is_measured_once(monkeypatch):
    """Whatever a partner's reference is of: a character that the font lacks takes eight."""
    measured, out, at = [], io.BytesIO(), datetime(2026, 3, 1, tzinfo=UTC)

    def width(text, *of):
        measured.append(len(text))
        return inner(text, *of)

    inner = pdfmetrics.stringWidth
    monkeypatch.setattr(pdfmetrics, "stringWidth", width)
    writer = PdfWriter(out, Cover(ReportSubject("claim_id", "clm_1"), None, Period(at, at), at))
    data = {"partner_claim_id": "\u6f22" * 400}
    writer.line(ReportLine("live", 1, at, "X", "X.", "system:x", None, "req_1", data, {}))
    writer.end([])
    text = "".join(pypdfium2.PdfDocument(out)[0].get_textpage().get_text_bounded().split())
    assert "[U+6F22]" * 400 in text
    assert sum(measured) < 4 * len("[U+6F22]" * 400)


def test_a_pdf_carries_its_checkpoint_as_text_and_code(team, claim, tmp_path):
    """A telephone reads from the paper what the text says, and a key signed it."""
    path = tmp_path / "report.pdf"
    answer = team.do(
        *("audit", "report", "--claim", claim, *ALWAYS, "--ledger", "live"),
        *("--format", "pdf", "--out", str(path)),
    )
    document = pypdfium2.PdfDocument(path)
    text = "\n".join(page.get_textpage().get_text_bounded() for page in document)
    assert claim in text
    assert "details: erased" in text
    assert TEAM in text
    image = document[len(document) - 1].render(scale=3).to_pil()
    (code,) = zxingcpp.read_barcodes(image)
    key = NoteKey.parse(team.do("audit", "public-key")["keys"][0]["public_key"])
    checkpoint = Checkpoint.open(code.text, [key])
    (rests_on,) = answer["rests_on"]
    assert (checkpoint.origin, checkpoint.size) == (rests_on["origin"], rests_on["size"])
    assert "".join(code.text.split()) in "".join(text.split())


def test_what_was_altered_is_not_reported(team, claim, tmp_path):
    """An event that is not what was signed leaves no file, and is named."""
    path = tmp_path / "report"
    arguments = ("audit", "report", "--claim", claim, *ALWAYS, "--out", str(path))
    url = team.dev.facts["database_url"]
    with team.unverified("live"), psycopg.connect(url, autocommit=True) as owner:
        row = owner.execute(LAST, (claim.encode(),)).fetchone()
        assert row is not None
        owner.execute("alter table live.events disable trigger append_only")
        owner.execute(ALTER, (row[0],))
        try:
            code, answer = team.answer(*arguments)
        finally:
            owner.execute(PUT_BACK, (row[1], row[0]))
            owner.execute("alter table live.events enable always trigger append_only")
    assert (code, answer["ok"], answer["ledger"]) == (1, False, "live")
    assert "not the one that was hashed" in answer["fault"]
    assert not path.exists()


def test_no_read_model_denies_a_subject(team, claim, tmp_path):
    """Who is unknown, the log says: a row of the index can be another one's."""
    team.wait_for_followers()
    change = "update live.activity set subject = %s where subject = %s"
    with psycopg.connect(team.dev.facts["database_url"], autocommit=True) as owner:
        owner.execute(change, ("clm_x", claim))
        try:
            only = ("--claim", claim, "--ledger", "live", *ALWAYS)
            _, *lines, _ = report(team, tmp_path / "report", *only)
        finally:
            owner.execute(change, (claim, "clm_x"))
    assert {"ClaimCreated", "ClaimStageChanged"} <= {line["event"] for line in lines}


def test_wrong_usage_is_refused(team, tmp_path):
    """An id that no event names, a period that ends before it begins, two ids."""
    out = ("--out", str(tmp_path / "report"))
    unknown = ("--partner", "ptn_00000000000000000000000009")
    assert team.refused("audit", "report", *unknown, *ALWAYS, *out) == "not_found"
    backwards = ("--from", "2026-03-02", "--to", "2026-03-01")
    done = team.raw("audit", "report", *unknown, *backwards, *out)
    assert (done.returncode, "ends before it begins" in done.stderr) == (2, True)
    both = team.raw("audit", "report", *unknown, "--claim", "clm_1", *ALWAYS, *out)
    assert (both.returncode, "give one of" in both.stderr) == (2, True)
