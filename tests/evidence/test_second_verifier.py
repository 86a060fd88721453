"""The second verifier shares nothing with the service, and the two agree on every file."""

import base64
import json
import random
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from service.core.ids import stream_id
from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault
from service.evidence.export.receipt_verifier import check_receipt
from service.ledger.merkle import CompactRange
from tests.evidence.evidence_world import KEY, OTHER, make_files

HOME = "example.com/claim-ledger/live"
SCRIPT = Path("deploy/verify_export.py").resolve()


@pytest.fixture(scope="module")
def files(module_database_url, tmp_path_factory):
    """Return the evidence files of one history."""
    return make_files(module_database_url, tmp_path_factory.mktemp("evidence"))


def second(path, *keys, older=None, cwd=None):
    """Return the exit code and verdict of the second verifier, as a stranger runs it."""
    arguments = [sys.executable, "-I", "-S", SCRIPT, path]
    for key in keys or (KEY,):
        arguments += ["--public-key", key.public_text]
    if older is not None:
        note = path.with_name("older.txt")
        note.write_text(older)
        arguments += ["--checkpoint", note]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_it_needs_nothing_but_python(files, tmp_path):
    """Isolated from site-packages and in another directory, it verifies every kind of file."""
    for path in (*files.exports, files.receipt):
        code, verdict = second(path, cwd=tmp_path)
        assert (code, verdict["ok"], verdict["size"]) == (0, True, files.size), verdict
    for path in files.exports:
        assert second(path, older=files.older, cwd=tmp_path)[1]["ok"]


def test_it_is_short():
    """A reader can check it in one sitting."""
    assert len(SCRIPT.read_text().splitlines()) <= 200
    assert "service" not in SCRIPT.read_text()


class Mutant:
    """Draws altered files of one kind."""

    def __init__(self, path, seed):
        self.lines = path.read_bytes().splitlines(keepends=True)
        self.draw = random.Random(seed)  # noqa: S311 - a seed, so that a failure comes again

    def byte(self):
        """Alter one byte, to another of its class or of any."""
        content = bytearray(b"".join(self.lines))
        at = self.draw.randrange(len(content))
        others = b'abcXYZ0189"\\,:{}[]=+/ \n\x00\x80\xff'
        content[at] = self.draw.choice([one for one in others if one != content[at]])
        return bytes(content)

    def bit(self):
        """Alter one bit."""
        content = bytearray(b"".join(self.lines))
        content[self.draw.randrange(len(content))] ^= 1 << self.draw.randrange(8)
        return bytes(content)

    def cut(self):
        """Truncate."""
        content = b"".join(self.lines)
        return content[: self.draw.randrange(len(content))]

    def drop(self):
        """Leave a line out."""
        at = self.draw.randrange(len(self.lines))
        return b"".join(self.lines[:at] + self.lines[at + 1 :])

    def repeat(self):
        """Have a line twice."""
        at = self.draw.randrange(len(self.lines))
        return b"".join(self.lines[: at + 1] + self.lines[at:])

    def swap(self):
        """Exchange two lines."""
        if len(self.lines) == 1:
            return self.bit()
        lines = list(self.lines)
        a, b = self.draw.sample(range(len(lines)), 2)
        lines[a], lines[b] = lines[b], lines[a]
        return b"".join(lines)

    def field(self):
        """Alter a field of a line, or add one, and spell the line as it should be."""
        lines = list(self.lines)
        at = self.draw.randrange(len(lines))
        line = json.loads(lines[at])
        inner = line
        if "events" in line:
            inner = self.draw.choice([line, *line["events"]])
        name = self.draw.choice(list(inner))
        inner[name] = self.draw.choice(
            [None, 0, 1, -1, 2**63, 1.0, True, "", "live", "x", [], {}, [inner[name]], "\ud800"]
        )
        lines[at] = spelled(line)
        return b"".join(lines)

    def rehashed(self):
        """Alter an event, and give it the hash that it has then."""
        lines = list(self.lines)
        at = self.draw.randrange(len(lines))
        line = json.loads(lines[at])
        event = line["events"][0] if "events" in line else line
        if "state" not in event:
            return self.bit()
        event["state"] = event["state"].replace("a", "b", 1)
        event["leaf_hash"] = base64.b64encode(hash_of(event)).decode()
        lines[at] = spelled(line)
        return b"".join(lines)

    def any(self):
        """Alter somehow."""
        kinds = [self.byte, self.bit, self.cut, self.drop, self.repeat, self.swap, self.field]
        return self.draw.choice([*kinds, self.rehashed])()


@pytest.mark.parametrize("kind", ["whole", "later", "entity", "receipt"])
def test_both_refuse_forged_notes_and_wrong_keys(files, kind, tmp_path):
    """Another key of the same name, a root that was signed by another, and no key at all."""
    original = getattr(files, kind)
    program, path = load(), tmp_path / original.name
    line = json.loads(original.read_bytes().splitlines()[-1])
    checkpoint = Checkpoint.open(line["checkpoint"], [KEY])
    forged = [
        checkpoint.sign(OTHER),
        checkpoint._replace(root=bytes(32)).sign(KEY),
        checkpoint._replace(size=1).sign(KEY),
        checkpoint._replace(origin="example.com/claim-ledger/test/1").sign(KEY),
        line["checkpoint"].replace("\u2014 ", "- "),
        line["checkpoint"].removesuffix("\n"),
    ]
    for note in forged:
        before = json.dumps(line["checkpoint"], ensure_ascii=False).encode()
        after = json.dumps(note, ensure_ascii=False).encode()
        path.write_bytes(original.read_bytes().replace(before, after))
        ours = first(path, None, [KEY])
        assert (ours[0], ours) == (False, program(path, None, KEY)), note
    ours = first(original, None, [OTHER])
    assert (ours[0], ours) == (False, program(original, None, OTHER))
    assert second(original, OTHER)[0] == 1
    assert first(original, None, [OTHER, KEY]) == program(original, None, OTHER, KEY)
    assert second(original, OTHER, KEY)[0] == 0


def test_both_say_how_much_they_read(files):
    """A part names where it begins, whose it is and how many events it has: none looks whole."""
    for path in files.exports:
        header, *events, _ = map(json.loads, path.read_bytes().splitlines())
        verdict, theirs = verify_export(path, [KEY], None), second(path)[1]
        assert (verdict.first, verdict.entity) == (header["from"], header.get("entity"))
        assert (theirs["from"], theirs.get("entity")) == (header["from"], header.get("entity"))
        assert verdict.events == theirs["events"] == len(events)
    assert second(files.receipt)[1]["events"] == 3


@pytest.mark.parametrize("given", ["garbage", "a+00000000+AAAA", KEY.private_text, ""])
def test_wrong_usage_is_no_finding(files, given, tmp_path):
    """No public key, and a checkpoint that none of the keys signed: one line, and 2."""
    (tmp_path / "empty").write_text("")
    (tmp_path / "other").write_text(files.older)
    for arguments in (
        [files.whole, "--public-key", given],
        [files.whole, "--public-key", KEY.public_text, "--checkpoint", tmp_path / "empty"],
        [files.whole, "--public-key", OTHER.public_text, "--checkpoint", tmp_path / "other"],
        [tmp_path / "none", "--public-key", KEY.public_text],
        [files.whole],
    ):
        done = subprocess.run(
            [sys.executable, "-I", "-S", SCRIPT, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("verify_export.py: ")
        assert done.stderr.count("\n") == 1
        assert KEY.private_text not in done.stderr


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


@pytest.mark.parametrize(
    ("given", "stream", "ok"),
    [
        ({}, "lineage", True),
        ({"origin": None}, "lineage", False),
        ({"shared_size": None}, "lineage", False),
        ({"shared_size": 0}, "lineage", False),
        ({"authorisation": ""}, "lineage", False),
        ({"authorisation": authorised(OTHER, "x", "").authorisation}, "lineage", False),
        ({"authorisation": authorised(KEY, f"{HOME}/lin_1", "").authorisation}, "lineage", False),
        ({"origin": None, "shared_size": None}, "another", True),
    ],
)
def test_lineages(tmp_path, given, stream, ok):
    """Both believe those of their stream alone, and only what the operator's key has signed."""
    lost = Checkpoint(f"{HOME}/lin_1", 3, bytes(32)).sign(KEY)
    begun = [
        msgspec.to_builtins(authorised(KEY, f"{HOME}/lin_1", "1")),
        msgspec.to_builtins(authorised(KEY, f"{HOME}/lin_2", "2", lost, 1)) | given,
    ]
    lines, tree = [], CompactRange()
    for position, data in enumerate(begun, 1):
        named = stream_id("lineage" if position == 1 else stream, "live")
        state = json.dumps({"data": {k: v for k, v in data.items() if v is not None}})
        event = {"position": position, "append_id": position, "originator_id": str(named)}
        event |= {"originator_version": position, "topic": "LineageBegun", "state": state}
        tree.append(hash_of(event))
        lines.append(event | {"leaf_hash": base64.b64encode(hash_of(event)).decode()})
    root = base64.b64encode(tree.root()).decode()
    header = {"format": "claim-ledger export v1", "ledger": "live", "from": 1, "size": 2}
    note = Checkpoint(f"{HOME}/lin_2", 2, tree.root()).sign(KEY)
    path = tmp_path / "export.ndjson"
    whole = [header | {"root": root}, *lines, {"checkpoint": note}]
    path.write_bytes(b"".join(map(spelled, whole)))
    verdict, (code, theirs) = verify_export(path, [KEY], None), second(path)
    assert (verdict.ok, theirs["ok"], code) == (ok, ok, int(not ok))
    if ok and stream == "lineage":
        assert (verdict.set_aside, verdict.set_aside_size) == (1, 3)
        assert (theirs["set_aside"], theirs["set_aside_size"]) == (1, 3)


def spelled(line):
    """Return a line in its one spelling."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass") + b"\n"


def hash_of(event):
    """Return an event's leaf hash, in the words of docs/ledger-format.md."""
    state = sha256(event["state"].encode()).hexdigest()
    names = ("position", "append_id", "originator_id", "originator_version", "topic")
    columns = [str(event[name]) for name in names]
    record = "\n".join(["claim-ledger event v1", *columns, state]) + "\n"
    return sha256(b"\0" + record.encode()).digest()


def first(path, older, keys):
    """Return whether our own verifier takes a file, and the position that it names."""
    if path.suffix == ".json":
        try:
            check_receipt(path, keys)
        except EvidenceFault as fault:
            return False, fault.position
        return True, None
    verdict = verify_export(path, keys, older)
    assert verdict.ok == (verdict.fault is None)
    return verdict.ok, verdict.position


@pytest.mark.parametrize("kind", ["whole", "later", "entity", "receipt"])
def test_both_find_every_alteration(files, kind, tmp_path):
    """Hundreds of altered files: none is taken, and both name the same position.

    An entity's export without one of its events, or under another entity's name, still holds: it
    proves what is there, and not that nothing is missing.
    """
    original = getattr(files, kind)
    program = load()
    mutant, path = Mutant(original, seed=20260301), tmp_path / original.name
    for number in range(120):
        content = mutant.any()
        if content == original.read_bytes():
            continue
        path.write_bytes(content)
        given = files.older if number % 4 == 0 and kind != "receipt" else None
        ours, theirs = first(path, given, [KEY]), program(path, given, KEY)
        assert ours == theirs, (number, content)
        taken = content.splitlines(keepends=True)[1:]
        is_part = kind == "entity" and set(taken) <= set(mutant.lines)
        assert not ours[0] or is_part, (number, content)


def load():
    """Return the second verifier as a function, so that hundreds of runs take seconds."""
    text, _, _ = SCRIPT.read_text().partition("\nparser = ")
    names = {}
    exec(compile(text, SCRIPT, "exec"), names)  # noqa: S102 - our own script

    def run(path, older, *keys):
        known = {(key.name, key.key_id): key.public for key in keys}
        try:
            note = older and names["open_checkpoint"](older, known)
            with path.open("rb") as file:
                names["verify"](file, known, note)
        except AssertionError as error:
            return False, error.args[0]
        except names["UNFIT"]:
            return False, names["doubt"][0]
        return True, None

    return run
