"""`claim-ledger audit export`, `prove` and `check`, on a running dev and without any."""

import json
from uuid import uuid4

import pytest

from tests.dev_process import environment, run
from tests.world import claim_body


@pytest.fixture(scope="module")
def public_key(team):
    """Answer the dev's public key."""
    return team.do("audit", "public-key")["keys"][0]["public_key"]


def claim(team, demo, mode="live"):
    """Create a claim; answer its id."""
    body = claim_body(demo["entity_id"], f"case-{uuid4().hex}")
    answer = team.call(demo[f"{mode}_key"], "POST", "/claims", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["claim_id"]


def offline(*arguments):
    """Run a command without settings or a database; answer its exit code and its object."""
    done = run(*arguments, "--json", env=environment())
    return done.returncode, json.loads(done.stdout)


def test_a_receipt_is_made_at_once_and_holds_offline(team, demo, public_key, tmp_path):
    """The claim of a moment ago is numbered, signed, proved; a stranger sees what is proved."""
    claim_id, path = claim(team, demo), tmp_path / "receipt.json"
    made = team.do("audit", "prove", claim_id, "--out", str(path))
    code, proved = offline("audit", "check", path, "--public-key", public_key)
    assert (code, made["ok"], proved["ok"]) == (0, True, True)
    assert proved["claim_id"] == claim_id
    assert proved["entity_id"] == demo["entity_id"]
    assert (proved["origin"], proved["size"]) == (made["origin"], made["size"])
    assert proved["events"][0]["topic"] == "ClaimCreated"
    told = run("audit", "check", path, "--public-key", public_key, env=environment()).stdout
    assert claim_id in told
    path.write_bytes(path.read_bytes().replace(b"ClaimCreated", b"ClaimCreates", 1))
    code, refused = offline("audit", "check", path, "--public-key", public_key)
    assert (code, refused["ok"]) == (1, False)
    assert refused["position"] == proved["events"][0]["position"]
    assert refused["fault"]


def test_an_export_holds_offline(team, demo, public_key, tmp_path):
    """Each ledger, an entity, and from a position on; an altered file ends with 1."""
    claim(team, demo)
    for ledger in ("live", "test", "accounts"):
        path = tmp_path / ledger
        made = team.do("audit", "export", "--out", str(path), "--ledger", ledger)
        code, answer = offline("audit", "verify", "--export", path, "--public-key", public_key)
        assert (code, answer["ok"], answer["size"]) == (0, True, made["size"])
    note, lines = tmp_path / "older.txt", (tmp_path / "live").read_text().splitlines()
    note.write_text(json.loads(lines[-1])["checkpoint"])
    size = json.loads(lines[0])["size"]
    claim(team, demo)
    known = ("--public-key", public_key, "--checkpoint", note)
    for options in (
        ["--entity", demo["entity_id"]],
        ["--from", "3"],
        ["--from", str(size + 1)],
        ["--from", str(size + 2)],
    ):
        path = tmp_path / f"live-{options[0]}-{options[1]}"
        made = team.do("audit", "export", "--out", str(path), *options, "--checkpoint", str(note))
        assert offline("audit", "verify", "--export", path, *known)[0] == 0
    beyond = team.raw("audit", "export", "--out", str(tmp_path / "none"), "--from", "1000")
    assert beyond.returncode == 2
    path.write_bytes(path.read_bytes()[:-1])
    code, answer = offline("audit", "verify", "--export", path, *known)
    assert (code, answer["ok"]) == (1, False)


def test_a_file_that_is_there_stays(team, tmp_path):
    """Nothing is written over, and nothing half written is left."""
    path = tmp_path / "export"
    path.write_text("mine")
    code, answer = team.answer("audit", "export", "--out", str(path))
    assert (code, path.read_text()) == (1, "mine")
    assert "--force" in answer["message"]
    nowhere = tmp_path / "none" / "export"
    assert team.answer("audit", "export", "--out", str(nowhere))[0] == 1
    assert team.do("audit", "export", "--out", str(path), "--force")["ok"]
    assert path.read_text().startswith('{"format":"claim-ledger export v1"')
    other = tmp_path / "other"
    assert team.refused("audit", "prove", "clm_none", "--out", str(other)) == "claim_not_found"
    refused = team.refused("audit", "export", "--out", str(other), "--entity", "ent_none")
    assert refused == "entity_not_found"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["export"]
