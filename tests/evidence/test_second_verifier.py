"""The second verifier shares nothing with the service, and the two agree on every file."""

import ast
import base64
import io
import json
import random
import re
import subprocess
import sys
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from click.testing import CliRunner

from service.cli import cli
from service.cli.audit.checked import checked
from service.core.ids import stream_id
from service.evidence.authorisation import authorised, lineage_of
from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import NO_DEMANDS
from service.evidence.export import format as lines
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault, decode_state
from service.evidence.export.receipt_verifier import check_receipt
from service.evidence.streams_note import StreamsNote, stream_leaf
from service.ledger.merkle import CompactRange
from tests.evidence.altered_files import Mutant, hash_of, spelled
from tests.evidence.evidence_world import KEY, OTHER, make_files
from tests.evidence.insider import Insider
from tests.evidence.memory_log import FILES, later, of_entity, sample, whole
from tests.evidence.memory_proofs import PROOFS
from tests.evidence.second_verifier import (
    PROGRAM,
    SCRIPT,
    agreed,
    arguments_of,
    first,
    judged,
    second,
)
from tests.imports import imported
from tests.ledger.merkle_tree import MerkleTree
from tests.tables import every_row

pytestmark = pytest.mark.server
HOME = "example.com/claim-ledger/live"


@pytest.fixture(scope="module")
def files(module_database_url, tmp_path_factory):
    """Return the evidence files of one history."""
    return make_files(module_database_url, tmp_path_factory.mktemp("evidence"))


def alone(*arguments, cwd=None):
    """Run the second verifier as a stranger does: isolated, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-I", "-S", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_it_needs_nothing_but_python(files, tmp_path):
    """Isolated from site-packages and in another directory, it verifies every kind of file."""
    for path in (*files.exports, files.receipt):
        done = alone(*arguments_of(path), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == second(path)[1]
        assert (json.loads(done.stdout)["ok"], json.loads(done.stdout)["size"]) == (
            True,
            files.size,
        )
    for path in files.exports:
        assert json.loads(alone(*arguments_of(path, older=files.older), cwd=tmp_path).stdout)["ok"]
    assert alone(*arguments_of(files.whole, OTHER), cwd=tmp_path).returncode == 1


def test_it_stands_alone():
    """It imports the standard library only, and knows nothing of the service."""
    assert imported(SCRIPT) <= sys.stdlib_module_names


def test_it_quotes_the_format():
    """What its docstrings put in quotation marks stands in docs/ledger-format.md."""
    text = _words(Path("docs/ledger-format.md").read_text())
    docstrings = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    quotes = [quote for one in docstrings for quote in re.findall(r'"([^"]{4,})"', one)]
    assert len(quotes) > 15
    for quote in quotes:
        assert _words(quote).rstrip(".").lower() in text.lower(), quote


def _words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("kind", ["whole", "later", "entity", "receipt"])
def test_both_refuse_forged_notes_and_wrong_keys(files, kind, tmp_path):
    """Another key of the same name, a root that was signed by another, and no key at all."""
    original = getattr(files, kind)
    path = tmp_path / original.name
    line = json.loads(original.read_bytes().splitlines()[-1])
    checkpoint = Checkpoint.open(line["checkpoint"], [KEY])
    forged = [
        checkpoint.sign(OTHER),
        checkpoint._replace(root=bytes(32)).sign(KEY),
        checkpoint._replace(size=1).sign(KEY),
        checkpoint._replace(size=2**63).sign(KEY),
        checkpoint._replace(origin="example.com/claim-ledger/test/1").sign(KEY),
        line["checkpoint"].replace("\u2014 ", "- "),
        line["checkpoint"].removesuffix("\n"),
    ]
    for note in forged:
        before = json.dumps(line["checkpoint"], ensure_ascii=False).encode()
        after = json.dumps(note, ensure_ascii=False).encode()
        path.write_bytes(original.read_bytes().replace(before, after))
        ours = first(path, None, [KEY])
        assert (ours[0], ours) == (False, judged(path)), note
    ours = first(original, None, [OTHER])
    assert (ours[0], ours) == (False, judged(original, OTHER))
    assert first(original, None, [OTHER, KEY]) == judged(original, OTHER, KEY) == (True, None)


def test_both_say_how_much_they_read(files):
    """A part names where it begins, whose it is and how many events it has: none looks whole."""
    for path in files.exports:
        header, *events, _ = map(json.loads, path.read_bytes().splitlines())
        verdict, theirs = verify_export(path, [KEY], None), second(path)[1]
        assert (verdict.first, verdict.entity) == (header["from"], header.get("entity"))
        assert (theirs["from"], theirs.get("entity")) == (header["from"], header.get("entity"))
        assert verdict.events == theirs["events"] == len(events)
    assert second(files.receipt)[1]["events"] == 3


def test_both_name_what_a_proof_is_of(files, tmp_path):
    """A receipt, or a proof of absence, of another claim does not read the same."""
    ours, theirs = check_receipt(files.receipt.read_bytes(), [KEY]), second(files.receipt)[1]
    assert (theirs["claim_id"], theirs["entity_id"], theirs["partner_id"]) == (
        *(ours.claim_id, ours.entity_id, ours.partner_id),
    )
    path = tmp_path / "absence.json"
    path.write_bytes(PROOFS["absence.json"](sample()))
    ours, theirs = checked(path, [KEY], None, NO_DEMANDS), second(path)[1]
    names = ("epoch", "partner_id", "entity_id", "partner_claim_id")
    assert [ours[name] for name in names] == [theirs[name] for name in names]


@pytest.mark.parametrize("entity", ["", " ", "ent\u0301", "e" * 65])
def test_a_part_is_of_an_entity_with_an_id(tmp_path, entity):
    """A verifier that shows what the header says would show a part as if it were whole."""
    path = tmp_path / "entity.ndjson"
    header, *rest = FILES["entity.ndjson"](sample()).splitlines(keepends=True)
    path.write_bytes(spelled(json.loads(header) | {"entity": entity}) + b"".join(rest))
    assert (verify_export(path, [KEY], None).ok, second(path)[0]) == (False, 1)


def test_what_is_too_large_is_called_that(tmp_path, monkeypatch):
    """A file that is read at once; both have the same bound."""
    assert lines.LINE_BYTES_MAX == PROGRAM.LINE_BYTES_MAX
    path = tmp_path / "history.json"
    path.write_bytes(PROOFS["history.json"](sample()))
    size = path.stat().st_size
    for most, said in ((size, True), (size - 1, False)):
        monkeypatch.setattr(lines, "LINE_BYTES_MAX", most)
        monkeypatch.setattr(PROGRAM, "LINE_BYTES_MAX", most)
        assert (first(path, None, [KEY])[0], second(path)[0]) == (said, int(not said))
    with pytest.raises(EvidenceFault, match="the file has more than"):
        checked(path, [KEY], None, NO_DEMANDS)


def test_wrong_usage_is_no_finding(files, tmp_path, monkeypatch, capsys):
    """No public key; a checkpoint that no key signed, or of 2^63 events: one line, and 2."""
    (tmp_path / "empty").write_text("")
    (tmp_path / "other").write_text(files.older)
    large = Checkpoint.open(files.older, [KEY])._replace(size=2**63).sign(KEY)
    (tmp_path / "large").write_text(large)
    key, whole = KEY.public_text, files.whole
    raw = b"\x04" + bytes(32)  # of a witness
    key_id = sha256(b"example.org\n" + raw).hexdigest()[:8]
    witness_key = f"example.org+{key_id}+{base64.b64encode(raw).decode()}"
    for arguments in (
        *([whole, "--public-key", given] for given in ("garbage", "a+00000000+AAAA", "")),
        [whole, "--public-key", KEY.private_text],
        [whole, "--public-key", key, "--checkpoint", tmp_path / "empty"],
        [whole, "--public-key", key, "--checkpoint", tmp_path / "large"],
        [whole, "--public-key", key, "--checkpoint", tmp_path / "none"],
        [whole, "--public-key", key, "--checkpoint", tmp_path / "other", "--streams", whole],
        [whole, "--public-key", witness_key],
        [whole, "--public-key", OTHER.public_text, "--checkpoint", tmp_path / "other"],
        [tmp_path / "none", "--public-key", key],
        [whole],
    ):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            PROGRAM.main()
        said = capsys.readouterr()
        assert (ended.value.code, said.out) == (2, "")
        assert said.err.startswith("verify_export.py: ")
        assert said.err.count("\n") == 1
        assert KEY.private_text not in said.err
    done = alone(whole, "--public-key", "garbage")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    "state",
    ["[" * 100_000, "", "[]", "{}", '{"data":[]}', '{"data":null}', '{"data":{"origin":[]}}', "7"],
)
def test_a_lineage_of_no_known_shape(tmp_path, state):
    """A state that nobody can read is a fault at its position to both, and no crash."""
    event = {"position": 1, "append_id": 1, "originator_id": str(stream_id("lineage", "live"))}
    event |= {"originator_version": 1, "topic": "LineageBegun", "state": state}
    leaf = hash_of(event)
    event |= {"leaf_hash": base64.b64encode(leaf).decode()}
    header = {"format": "claim-ledger export v1", "ledger": "live", "from": 1, "size": 1}
    note = Checkpoint(f"{HOME}/lin_1", 1, leaf).sign(KEY)
    path = tmp_path / "export.ndjson"
    whole = [header | {"root": event["leaf_hash"]}, event, {"checkpoint": note}]
    path.write_bytes(b"".join(map(spelled, whole)))
    verdict, (code, theirs) = verify_export(path, [KEY], None), second(path)
    assert (verdict.ok, verdict.position) == (False, 1)
    assert (code, theirs["ok"], theirs["position"]) == (1, False, 1)
    assert theirs["fault"]


def nested(depth):
    """Return a value of so many objects and lists, of which each has the next."""
    return '{"a":[' * (depth // 2) + "[" * (depth % 2) + "]" * (depth % 2) + "]}" * (depth // 2)


def from_deep_within(read, calls=500):
    """Call something where Python has little room for further calls."""
    return from_deep_within(read, calls - 1) if calls else read()


def test_both_refuse_states_that_readers_take_for_different_things():
    """Whatever the member is in which they do: one of them would pass over it."""
    good = ["7", "1" * 1000, f"-{'1' * 1000}", "1e9999", '{"b":1}', '"\\ud83d\\ude00"']
    good += [nested(98), f'"{"[" * 1000}"', '{"\\"[":0},' * 200 + "0"]
    bad = [
        nested(99),
        nested(990),
        "1" * 1001,
        f"-{'1' * 1001}",
        "NaN",
        "-Infinity",
        '{"b":1,"b":1}',
        '"\\ud83d"',
        "01",
    ]
    with every_row() as row:
        for value in good:
            with row(value[:20]):
                state = f'{{"a":[{value}]}}'
                from_deep_within(lambda state=state: decode_state(state, msgspec.Raw))
                from_deep_within(lambda state=state: PROGRAM.read_state({"state": state}))
        for value in bad:
            state = f'{{"a":[{value}]}}'
            with row(value[:20]), pytest.raises(ValueError):  # noqa: PT011 - each its own words
                decode_state(state, msgspec.Raw)
            with row(value[:20]), pytest.raises(ValueError):  # noqa: PT011 - each its own words
                PROGRAM.read_state({"state": state})


ALONE = {
    "previous": None,
    "shared_size": None,
    "authorisation": authorised(KEY, f"{HOME}/lin_2", "2").authorisation,
}
"""Of a second lineage that follows none, and is authorised so."""


@pytest.mark.parametrize(
    ("given", "stream", "ok"),
    [
        ({}, "lineage", True),
        ({"origin": None}, "lineage", False),
        ({"shared_size": None}, "lineage", False),
        ({"shared_size": 0}, "lineage", False),
        ({"authorisation": ""}, "lineage", False),
        (ALONE, "lineage", False),
        ({"authorisation": authorised(OTHER, "x", "").authorisation}, "lineage", False),
        ({"authorisation": authorised(KEY, f"{HOME}/lin_1", "").authorisation}, "lineage", False),
        ({"origin": None, "shared_size": None}, "another", True),
    ],
)
def test_lineages(tmp_path, given, stream, ok):
    """Both believe those of their stream alone, and only what the operator's key has signed."""
    second_one = msgspec.to_builtins(authorised(KEY, f"{HOME}/lin_2", "2", LOST, 1)) | given
    verdict, theirs = lineages_judged(tmp_path, second_one, stream=stream)
    assert (verdict.ok, theirs["ok"]) == (ok, ok)
    if ok and stream == "lineage":
        assert (verdict.set_aside, verdict.set_aside_size) == (1, 3)
        assert (theirs["set_aside"], theirs["set_aside_size"]) == (1, 3)


@pytest.mark.parametrize(
    ("begun", "position"),
    [
        ([("lin_2", 2)], 2),  # only one event precedes it
        ([("lin_2", 1), ("lin_3", 1)], 3),  # lin_1 is followed already
    ],
)
def test_lineages_that_do_not_fit_their_place(tmp_path, begun, position):
    """Both refuse them where they are, although the operator's key has signed them."""
    more = [authorised(KEY, f"{HOME}/{name}", "", LOST, shared) for name, shared in begun]
    verdict, theirs = lineages_judged(tmp_path, *map(msgspec.to_builtins, more))
    assert (verdict.ok, verdict.position) == (False, position)
    assert (theirs["ok"], theirs["position"]) == (False, position)


def test_the_first_lineage_of_a_restored_log_follows_the_one_that_was_lost():
    """Both take it with a past, as from before its first checkpoint, and with none."""
    keys = {}
    PROGRAM.parse_key(KEY.public_text, keys)
    with every_row() as row:
        for past in ((), (LOST, 2)):
            with row(past[1:]):
                begun, found = authorised(KEY, f"{HOME}/lin_2", "", *past), {}
                ours = lineage_of(begun, [KEY], "live", (), position=3)
                state = json.dumps({"data": msgspec.to_builtins(begun)})
                PROGRAM.begin_lineage(found, {"position": 3, "state": state}, "live", keys)
                shared = (ours.follows or "", ours.shared_size, ours.follows_size)
                assert found == {ours.origin: shared}


LOST = Checkpoint(f"{HOME}/lin_1", 3, bytes(32)).sign(KEY)


def lineages_judged(tmp_path, *later, stream="lineage"):
    """Return both verdicts on a log of lineages, of which all but the first are in a stream."""
    begun = [msgspec.to_builtins(authorised(KEY, f"{HOME}/lin_1", "1")), *later]
    lines, tree = [], CompactRange()
    for position, data in enumerate(begun, 1):
        named = stream_id("lineage" if position == 1 else stream, "live")
        state = json.dumps({"data": {k: v for k, v in data.items() if v is not None}})
        event = {"position": position, "append_id": position, "originator_id": str(named)}
        event |= {"originator_version": position, "topic": "LineageBegun", "state": state}
        tree.append(hash_of(event))
        lines.append(event | {"leaf_hash": base64.b64encode(hash_of(event)).decode()})
    root = base64.b64encode(tree.root()).decode()
    header = {"format": "claim-ledger export v1", "ledger": "live", "from": 1, "size": tree.size}
    present = "lin_1" if stream == "another" else "lin_2"
    note = Checkpoint(f"{HOME}/{present}", tree.size, tree.root()).sign(KEY)
    path = tmp_path / "export.ndjson"
    whole = [header | {"root": root}, *lines, {"checkpoint": note}]
    path.write_bytes(b"".join(map(spelled, whole)))
    code, theirs = second(path)
    assert code == int(not theirs["ok"])
    return verify_export(path, [KEY], None), theirs


def test_both_agree_on_every_alteration(tmp_path):
    """Of 2,000 altered files both take the same, and name the same position of the others.

    None is taken that somebody altered who has no key; but an entity's export without one of its
    events still holds: it proves what is there, and not that nothing is missing. Half of them are
    an insider's, who signs whatever there is.
    """
    draw = random.Random(20260301)  # noqa: S311 - a seed, so that a failure comes again
    log, insider = sample(), Insider(draw)
    kinds = FILES | PROOFS
    originals = {name: write(log) for name, write in kinds.items()}
    mutants = {name: Mutant(content, draw) for name, content in originals.items()}
    older, taken = log.note(log.older_size), 0
    for name, content in originals.items():
        assert agreed(tmp_path / name, content, None) == (True, None), name
    for changed, said in ({}, (True, None)), ({"root": "A" * 43 + "="}, (False, 1)):
        log.checkpoint = changed
        same, receipt = log.note(), originals["receipt.json"]
        assert agreed(tmp_path / "receipt.json", receipt, same) == said
    for number in range(2000):
        name = list(kinds)[number % 8]
        if number % 16 < 8:
            altered = sample()
            insider.alter(altered)
            content = kinds[name](altered)
        else:
            content = mutants[name].any()
        given = older if number % 3 == 0 else None
        is_taken, _ = agreed(tmp_path / name, content, given)
        taken += is_taken
        if number % 16 >= 8 and is_taken:
            lines = set(content.splitlines(keepends=True)[1:])
            is_part = name == "entity.ndjson" and lines <= set(mutants[name].lines)
            assert is_part or content == originals[name], (number, content)
    assert 100 < taken < 900, "a fair part of what an insider signs holds"


def test_every_file_continues_its_own_checkpoint(tmp_path):
    """Whatever part of the log it has; another root of that size is a fault of the first event."""
    log, bare = sample(), sample()
    bare.older_size = 0  # no proof of consistency
    kinds = FILES | PROOFS
    files = {name: write(log) for name, write in kinds.items()} | {"bare.ndjson": of_entity(bare)}
    same = log.note()
    log.checkpoint = {"root": "A" * 43 + "="}
    another = log.note()
    with every_row() as row:
        for name, content in files.items():
            with row(name):
                assert agreed(tmp_path / name, content, same) == (True, None)
                assert agreed(tmp_path / name, content, another)[0] is False


def test_an_index_is_made_again_from_a_whole_export(tmp_path):
    """By both verifiers; another index is a fault, and a part of a log tells none."""
    log, size = sample(), 7
    path = tmp_path / "whole.ndjson"
    path.write_bytes(whole(log))
    firsts = {UUID(e["originator_id"]).bytes: e["position"] for e in reversed(log.events)}
    with every_row() as row:
        for covered, change in ((size, 0), (4, 0), (3, 0), (2, 0), (4, 1), (size, -1)):
            with row(covered, change):
                leaves = sorted(one for one in firsts.items() if one[1] <= covered)
                root = MerkleTree([stream_leaf(*one) for one in leaves]).root()
                checkpoint = Checkpoint(log.origin, covered, log.tree.root(covered))
                note = StreamsNote(checkpoint, len(leaves) + change, root)
                code, ours, theirs = _verdicts(path, note.sign(KEY))
                assert (code, ours, theirs) == (int(change != 0), change == 0, change == 0)
    path.write_bytes(later(log))
    assert _verdicts(path, note.sign(KEY)) == (1, False, False)


def _verdicts(path, note):
    beside, key = path.with_suffix(".streams"), ["--public-key", KEY.public_text]
    beside.write_text(note)
    command = ["audit", "verify", "--export", str(path), "--streams", str(beside), *key, "--json"]
    done = CliRunner().invoke(cli, command)
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setattr(sys, "argv", [str(SCRIPT), str(path), "--streams", str(beside), *key])
        assert PROGRAM.main() == done.exit_code
    return done.exit_code, json.loads(done.stdout)["ok"], json.loads(out.getvalue())["ok"]
