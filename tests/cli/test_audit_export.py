"""`claim-ledger audit export`, `prove` and `check`, on a running dev and without one."""

import json
import os
import re
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from service.cli.outage import why
from service.ledger.sequencer import SequencingTimeout
from tests.dev_process import environment, run
from tests.evidence.checkpointing import KEY
from tests.terminal import watched
from tests.world import claim_body


@pytest.fixture(scope="module")
def public_key(team):
    """Return the dev's public key."""
    return team.do("audit", "public-key")["keys"][0]["public_key"]


def claim(team, demo, mode="live"):
    """Create a claim; return its id."""
    body = claim_body(demo["entity_id"], f"case-{uuid4().hex}")
    answer = team.call(demo[f"{mode}_key"], "POST", "/claims", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["claim_id"]


def offline(*arguments):
    """Run a command without settings or a database; return its exit code and its object."""
    done = run(*arguments, "--json", env=environment())
    return done.returncode, json.loads(done.stdout)


def test_a_receipt_is_made_at_once_and_holds_offline(team, demo, public_key, tmp_path):
    """A new claim is numbered, signed and proved at once; others can check the receipt."""
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
    position = proved["events"][0]["position"]
    kinds = ("entry", "tlog-proof", "cose")
    asked = ("--force", "--format", "tlog-proof", "--format", "cose")
    again = team.do("audit", "prove", claim_id, "--out", str(path), *asked)
    beside = [f"{path}.{position}.{kind}" for kind in kinds]
    assert again["beside"] == beside
    entry, proof, _ = (Path(one).read_bytes() for one in beside)
    assert entry.startswith(f"claim-ledger event v1\n{position}\n".encode())
    assert proof.startswith(f"c2sp.org/tlog-proof@v1\nindex {position - 1}\n".encode())
    assert f"\n\n{again['origin']}\n{again['size']}\n".encode() in proof
    for one in beside[1:]:
        code, told = offline("audit", "check", one, "--public-key", public_key)
        assert (code, told["topic"], told["position"]) == (0, "ClaimCreated", position)
        elsewhere = tmp_path / f"moved.{one.rpartition('.')[2]}"
        elsewhere.write_bytes(Path(one).read_bytes())
        asked = ("audit", "check", elsewhere, "--public-key", public_key)
        assert offline(*asked, "--entry", beside[0])[0] == 0
        assert run(*asked, env=environment()).returncode == 2
    path.write_bytes(path.read_bytes().replace(b"ClaimCreated", b"ClaimCreates", 1))
    code, refused = offline("audit", "check", path, "--public-key", public_key)
    assert (code, refused["ok"]) == (1, False)
    assert refused["position"] == proved["events"][0]["position"]
    assert refused["fault"]


def test_an_export_holds_offline(team, demo, public_key, tmp_path):
    """Exports of a ledger, of an entity and from a position hold; altered files exit with 1."""
    claim(team, demo)
    for ledger in ("live", "test", "accounts"):
        path = tmp_path / ledger
        made = team.do("audit", "export", "--out", str(path), "--ledger", ledger)
        code, answer = offline("audit", "verify", "--export", path, "--public-key", public_key)
        assert (code, answer["ok"], answer["size"]) == (0, True, made["size"])
    shown = watched(
        ("audit", "verify", "--export", path, "--public-key", public_key), environment()
    )
    assert re.search(r"\[#+\] +100% .* MB/s", shown)
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


def test_other_proofs_hold_offline(team, demo, public_key, tmp_path):
    """That a log continues, that a claim is absent, and a history; what exists is not absent."""
    claim_id, key = claim(team, demo), ("--public-key", public_key)
    older = team.do("audit", "checkpoint", "--ledger", "live")["checkpoints"][0]["size"]
    partner = team.do("claims", "show", claim_id)["partner_id"]
    names = ["--entity", demo["entity_id"], "--partner", partner]
    claim(team, demo)
    now = team.do("audit", "checkpoint", "--ledger", "live")["checkpoints"][0]["size"]
    for kind, command in {
        "consistency": ["consistency", str(older), str(now), "--out"],
        "absence": ["prove", "--absent", "case-none", *names, "--out"],
        "earlier": ["prove", "--absent", "case-none", *names, "--at", str(older), "--out"],
        "history": ["history", claim_id, "--prove"],
    }.items():
        path = tmp_path / kind
        team.do("audit", *command, str(path))
        code, answer = offline("audit", "check", path, *key)
        assert (code, answer["ok"]) == (0, True), answer
        if kind == "absence":  # and people read first that it holds
            told = run("audit", "check", path, *key, env=environment()).stdout
            assert told.startswith("OK: no such claim existed, as it was signed\n")
        path.write_bytes(path.read_bytes().replace(b"live", b"test", 1))
        code, answer = offline("audit", "check", path, *key)
        assert (code, answer["ok"]) == (1, False)
    shown = team.do("claims", "show", claim_id)
    code, answer = team.answer(
        *("audit", "prove", "--absent", shown["partner_claim_id"], *names),
        *("--out", str(tmp_path / "none")),
    )
    assert (code, answer["exists"], (tmp_path / "none").exists()) == (1, True, False)
    absent = ["--absent", "x", *names]
    for wrong in (
        ["--absent", "x"],
        [claim_id, *absent],
        ["--partner", "x"],
        [*absent, "--countersigned"],  # nobody is asked to sign
        [*absent, "--countersigned", "--at", "1"],
        [*absent, "--format", "cose"],
    ):
        assert team.answer("audit", "prove", *wrong, "--out", str(tmp_path / "none"))[0] == 2


def test_only_a_regular_file_is_overwritten(team, tmp_path):
    """A pipe, a link or an invalid name is a usage error and stays as it is."""
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    file.write_text("mine")
    link.symlink_to(file)
    for out, said in (
        (pipe, "is not a regular file"),
        (link, "is a symbolic link"),
        ("", "expected the name of a file"),
        ("-", "never to stdout"),
    ):
        for force in ([], ["--force"]):
            code, answer = team.answer("audit", "export", "--out", str(out), *force)
            assert (code, answer["code"]) == (2, "validation_failed")
            assert said in answer["message"]
    assert pipe.is_fifo()
    assert (link.readlink(), file.read_text()) == (file, "mine")


@pytest.mark.parametrize("command", [("audit", "verify", "--export"), ("audit", "check")])
def test_a_pipe_is_not_waited_for(tmp_path, command):
    """It may never say anything: neither is a device read, which may never end."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        code, answer = offline(*command, path, "--public-key", KEY.public_text)
        assert (code, answer["message"]) == (2, f"{path} is not a regular file")


def test_a_partial_export_is_described_as_partial(team, demo, public_key, tmp_path):
    """The answer says where it begins, which entity it covers, and how many events it has."""
    claim(team, demo)
    for options, told in (
        ([], {"from": 1}),
        (["--from", "3"], {"from": 3}),
        (["--entity", demo["entity_id"]], {"from": 1, "entity": demo["entity_id"]}),
    ):
        path = tmp_path / f"export{len(options)}{options[:1]}"
        made = team.do("audit", "export", "--out", str(path), *options)
        answer = offline("audit", "verify", "--export", path, "--public-key", public_key)[1]
        shown = {name: answer[name] for name in ("from", "entity", "events") if name in answer}
        assert shown == told | {"events": made["events"]}
        assert "published" not in answer


def test_a_receipt_is_made_from_events_alone(team, demo, public_key, tmp_path):
    """A read model that was altered, or that lost the claim, changes no receipt."""
    first, second = claim(team, demo), claim(team, demo)
    url = team.dev.facts["database_url"]
    with psycopg.connect(url, autocommit=True) as owner:
        stream = "select stream_id from live.claim_list where claim_id = %s"
        other = owner.execute(stream, [second]).fetchone()[0]
        for number, value in enumerate((other, UUID(int=0), None)):
            if value is None:
                owner.execute("delete from live.claim_list where claim_id = %s", [first])
            else:
                change = "update live.claim_list set stream_id = %s where claim_id = %s"
                owner.execute(change, [value, first])
            path = tmp_path / f"receipt-{number}"
            team.do("audit", "prove", first, "--out", str(path))
            code, proved = offline("audit", "check", path, "--public-key", public_key)
            assert (code, proved["claim_id"]) == (0, first)
    team.do("projections", "rebuild", "claim_list", "--ledger", "live")  # others share this dev


def test_a_sequencing_timeout_is_explained():
    """If another process holds the log's head, the error says so and reports no outage."""
    for data_dir in (None, Path("here")):
        said = why(SequencingTimeout("events wait"), data_dir)
        assert said.startswith("Events wait for their numbers")


def test_an_existing_file_is_not_overwritten(team, tmp_path):
    """Nothing is overwritten, and no partial file is left behind."""
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
