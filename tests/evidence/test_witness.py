"""The witness that auditors run (deploy/witness) signs one history of a log, whatever happens."""

import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from service.evidence.checkpoint import Checkpoint
from service.evidence.countersigning.witness_client import request_body
from service.evidence.note import NoteKey
from tests.evidence.checkpointing import KEY
from tests.evidence.witnesses import PROGRAM, SCRIPT, TestWitness, served
from tests.imports import imported
from tests.ledger.merkle_tree import MerkleTree
from tests.patience import PATIENCE_SECONDS, until
from tests.tables import every_row

pytestmark = pytest.mark.server
ORIGIN = f"{KEY.name}/live/lin_1"
TREE = MerkleTree([bytes([number]) * 32 for number in range(40)])
FORK = MerkleTree([bytes([number + 100]) * 32 for number in range(40)])
NEWER = NoteKey.of_seed(KEY.name, b"\x09" * 32)
STRANGER = NoteKey.of_seed("example.net/log", b"\x08" * 32)


@pytest.fixture
def witness(tmp_path):
    """Yield a witness of the log, under two keys of the operator."""
    made = TestWitness(tmp_path, 1, KEY, NEWER)
    yield made
    made.state.close()


def note_of(size, tree=TREE, key=KEY, origin=ORIGIN):
    """Return the signed checkpoint of so many leaves."""
    return Checkpoint(origin, size, tree.root(size)).sign(key)


def body_of(old, size, tree=TREE, **of):
    """Return a request from one size to another."""
    proof = tree.consistency_proof(old, size) if 0 < old < size else []
    return request_body(old, proof, note_of(size, tree, **of))


def test_what_is_signed_and_what_is_not(witness):
    """Each status that C2SP's tlog-witness has, one after the other."""
    twice = KEY.sign("x\n").rpartition("\n\n")[2]
    wrong = note_of(9).replace(note_of(9).splitlines()[-1], twice.strip())
    proof = TREE.consistency_proof(7, 12)
    extended = KEY.sign("\n".join((ORIGIN, "1", f"{'A' * 43}=", "more", "")))
    nothing = Checkpoint(ORIGIN, 0, bytes(32)).sign(KEY)
    to_8, beside = TREE.consistency_proof(7, 8), bytes(32)
    smaller = Checkpoint(ORIGIN, 16, TREE.root(8)).sign(KEY)
    higher = PROGRAM.node_hash(TREE.root(8), beside)
    larger = Checkpoint(ORIGIN, 8, higher).sign(KEY)
    with every_row() as row:
        for name, body, status in (
            ("no text", b"\xff", 400),
            ("no old size", note_of(7).encode(), 400),
            ("a size of nothing", b"0\n\n" + note_of(7).encode(), 400),
            ("a size with a zero before", b"old 00\n\n" + note_of(7).encode(), 400),
            ("no note", b"old 0\n\nx", 400),
            ("an extension line", f"old 0\n\n{extended}".encode(), 400),
            ("another log", body_of(0, 7, key=STRANGER, origin="example.net/log/live/1"), 404),
            ("a name that only begins alike", body_of(0, 7, origin=f"{KEY.name}2/live/1"), 404),
            ("another key's signature", body_of(0, 7, key=STRANGER), 403),
            ("a wrong signature", f"old 0\n\n{wrong}".encode(), 403),
            ("an empty tree of another root", f"old 0\n\n{nothing}".encode(), 422),
            ("an old size that is none", body_of(3, 7), 409),
            ("the first one", body_of(0, 7), 200),
            ("again, from nothing", body_of(0, 7), 409),
            ("again", body_of(7, 7), 200),
            ("the same size of a fork", body_of(7, 7, FORK), 422),
            ("a fork", body_of(7, 12, FORK), 422),
            ("no proof", request_body(7, [], note_of(12)), 422),
            ("a hash too short", request_body(7, [bytes(31)], note_of(12)), 400),
            ("a size that its tree does not have", request_body(7, to_8, smaller), 422),
            ("a tree above that of its size", request_body(7, [*to_8, beside], larger), 422),
            ("a proof too short", request_body(7, proof[1:], note_of(12)), 422),
            ("a proof too long", request_body(7, [*proof, bytes(32)], note_of(12)), 422),
            ("a proof where none is due", request_body(7, [bytes(32)], note_of(7)), 422),
            ("more than there can be", request_body(7, [bytes(32)] * 64, note_of(12)), 400),
            ("smaller than the old size", body_of(7, 5), 400),
            ("the next one, by a newer key", body_of(7, 12, key=NEWER), 200),
            ("the old one", body_of(7, 12), 409),
            ("from a size that it forgot", body_of(7, 40), 409),
            ("the last one", body_of(12, 40), 200),
            ("another lineage of the log", body_of(0, 3, FORK, origin=f"{KEY.name}/live/2"), 200),
        ):
            with row(name):
                answer = witness.answer(body)
                assert answer.status == status, answer.body
                if status == 409:
                    assert answer.kind == "text/x.tlog.size"
    refused = {path.read_text() for path in witness.home.glob("*/refused/*.txt")}
    assert note_of(12, FORK) in refused, "it proves the fork"
    assert [line.split()[0] for line in witness.told].count("REFUSED") == 7


def test_a_stranger_makes_up_no_fork(witness):
    """Checkpoints are public: with wrong proofs, and more lines, they are no evidence."""
    assert witness.answer(request_body(0, [bytes(32)], note_of(7))).status == 422
    witness.answer(body_of(0, 7))
    line = note_of(7).splitlines(keepends=True)[-1]
    other = STRANGER.sign("x\n").splitlines(keepends=True)[-1]
    for more in ("", line, other, line + other):
        assert witness.answer(request_body(7, [bytes(32)], note_of(7) + more)).status == 422
    assert not list(witness.home.glob("*/refused/*"))
    assert [one.split()[0] for one in witness.told] == ["signed"]
    line = note_of(12).splitlines(keepends=True)[-1]
    for more in ("", line, other, line + other):
        assert witness.answer(request_body(7, [bytes(32)], note_of(12) + more)).status == 422
    (kept,) = witness.home.glob("*/refused/*")
    assert kept.read_text() == note_of(12)
    assert witness.answer(body_of(7, 12, FORK)).status == 422
    assert witness.answer(body_of(7, 12)).status == 200
    (kept,) = witness.home.glob("*/refused/*")
    assert kept.read_text() == note_of(12, FORK), "what was signed in the end is no fork"


def test_every_old_size_leads_to_every_larger_one(witness):
    """Proofs of all shapes."""
    with every_row() as row:
        for old in range(1, 14):
            witness.origins = [f"{KEY.name}/live/{old}"]
            witness.witness = witness.started()
            for before, size in pairwise((0, old, *range(old, 40, 7))):
                with row(old, size):
                    body = body_of(before, size, origin=witness.origins[0])
                    assert witness.answer(body).status == 200
    assert witness.answer(body_of(0, 7)).status == 404, "of the log's key, and not one of these"


def test_what_is_kept_is_bounded(witness, monkeypatch):
    """Neither the log's key nor a stranger fills the disk, and what is known goes on."""
    monkeypatch.setattr(PROGRAM, "ORIGINS_MAX", 2)
    monkeypatch.setattr(PROGRAM, "REFUSED_MAX", 1)
    answers = [witness.answer(body_of(0, 7, origin=f"{KEY.name}/live/{n}")) for n in range(3)]
    assert [one.status for one in answers] == [200, 200, 503]
    origin = f"{KEY.name}/live/0"
    for size in (8, 9):
        assert witness.answer(body_of(7, size, FORK, origin=origin)).status == 422
    assert len([*witness.home.glob("*/refused/*.txt")]) == 1
    assert witness.answer(body_of(7, 12, origin=origin)).status == 200


def test_two_at_once_are_signed_one_after_the_other(witness):
    """Of two that continue the same checkpoint, one is told that there is a newer one."""
    witness.answer(body_of(0, 7))
    together, answers = threading.Barrier(8), []

    def ask(size, tree):
        body = body_of(7, size, TREE if tree else FORK)
        together.wait()
        answers.append(witness.answer(body).status)

    threads = [threading.Thread(target=ask, args=(8 + at, at % 4)) for at in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert answers.count(200) == 1
    assert set(answers) <= {200, 409, 422}


def test_what_was_signed_is_on_the_disk_before_it_is_answered(witness, monkeypatch):
    """A machine that stops in between leaves the old checkpoint or the new one, whole."""
    witness.answer(body_of(0, 7))
    monkeypatch.setattr(PROGRAM.os, "fsync", _fail)
    with pytest.raises(OSError, match="no space"):
        witness.answer(body_of(7, 12))
    monkeypatch.undo()
    witness.witness = witness.started()
    assert witness.answer(body_of(0, 7)).body == b"7\n"
    assert witness.answer(body_of(7, 12)).status == 200
    witness.state.close()
    with pytest.raises(BlockingIOError):
        _twice(witness)
    witness.witness = witness.started()
    assert witness.answer(body_of(7, 12)).body == b"12\n"
    assert not list(witness.home.glob("*/.*"))


def test_the_names_of_what_was_signed_are_on_the_disk_too(witness, monkeypatch):
    """Else a log's folder, or its newest note, could be gone after the machine stopped."""
    folder = witness.home / sha256(ORIGIN.encode()).hexdigest()
    synced, fsync = [], os.fsync

    def note(file):
        synced.append((os.fstat(file).st_ino, (folder / "checkpoint").exists()))
        fsync(file)

    monkeypatch.setattr(PROGRAM.os, "fsync", note)
    witness.answer(body_of(0, 7))
    assert synced == [
        (witness.home.stat().st_ino, False),
        ((folder / "checkpoint").stat().st_ino, False),
        (folder.stat().st_ino, True),
    ]


def _fail(_file):
    raise OSError("no space is left")


def _twice(witness):
    witness.state = PROGRAM.State(witness.home)
    PROGRAM.State(witness.home)


def test_a_fork_is_refused_where_the_disk_is_full(witness, monkeypatch):
    """What proves it cannot be kept then; the log is told nevertheless, which raises its alarm."""
    witness.answer(body_of(0, 7))
    monkeypatch.setattr(PROGRAM.os, "fsync", _fail)
    assert witness.answer(body_of(7, 12, FORK)).status == 422
    assert witness.told[-1] == "ERROR what was refused is not kept: no space is left"


def _connected(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), PATIENCE_SECONDS)


def _all_of(connection):
    """Return what comes until the other side ends the connection."""
    received = b""
    try:
        while more := connection.recv(4096):
            received += more
    except ConnectionResetError:  # it had not read all that was sent
        pass
    return received


def test_a_stranger_puts_no_request_into_the_body_of_another(witness):
    """Behind a proxy, whoever comes next on the connection would get its answer."""
    witness.answer(body_of(0, 7))
    hidden = f"GET /{sha256(ORIGIN.encode()).hexdigest()}/checkpoint HTTP/1.1\r\n\r\n"
    head = f"HTTP/1.1\r\nContent-Length: {len(hidden)}\r\n\r\n"
    with served(witness.witness) as url, every_row() as row:
        for first in ("POST /other", "GET /other", "POST /add-checkpoint", "HEAD /"):
            with row(first), _connected(url) as connection:
                connection.sendall(f"{first} {head}{hidden}".encode())
                assert _all_of(connection).count(b"HTTP/1.1 ") <= 1


def test_a_connection_ends_however_slowly_its_bytes_come(witness, monkeypatch):
    """Else a few of them, a byte now and then, would keep the log out for good."""
    monkeypatch.setattr(PROGRAM, "SECONDS_MAX", 0.05)
    monkeypatch.setattr(PROGRAM.Handler, "timeout", None)
    with served(witness.witness) as url, every_row() as row:
        for begun in (
            b"",
            b"POST /add-chec",
            b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 9",
        ):
            with row(begun), _connected(url) as connection:
                with suppress(ConnectionError):  # it may have ended before these came
                    connection.sendall(begun)
                assert _all_of(connection) == b""


def test_a_stranger_leaves_room_for_the_log():
    """One address has a few connections; a proxy on this machine may have all."""
    places = PROGRAM.Places()
    assert [places.take("192.0.2.1") for _ in range(9)] == [True] * 8 + [False]
    assert places.take("192.0.2.2")
    places.give("192.0.2.1")
    assert places.take("192.0.2.1")
    taken = [places.take("127.0.0.1") for _ in range(64)]
    assert taken == [True] * 55 + [False] * 9
    assert not places.take("192.0.2.3")
    places.give("127.0.0.1")
    assert places.take("192.0.2.3")


def test_a_connection_gives_its_place_back(witness, monkeypatch):
    """One too many is ended at once, and answered once another one has ended."""
    monkeypatch.setattr(PROGRAM, "CONNECTIONS_MAX", 1)
    with served(witness.witness) as url:
        with _connected(url):
            assert not _answers(url)
        until(lambda: _answers(url))
        until(lambda: _answers(url))


def _answers(url):
    with _connected(url) as connection:
        with suppress(ConnectionError):  # it may have been ended
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        return _all_of(connection).startswith(b"HTTP/1.1 404")


def test_over_http_it_is_bounded(witness):
    """A length has to be told, and is limited; monitors get the newest checkpoint."""
    with served(witness.witness) as url:
        name = sha256(ORIGIN.encode()).hexdigest()
        with every_row() as row:
            for path, body, status in (
                ("/add-checkpoint", b"a" * (1 << 20), 413),
                ("/other", b"", 404),
                (f"/{name}/checkpoint", None, 404),
                ("/../lock/checkpoint", None, 404),
                ("/add-checkpoint", body_of(0, 7), 200),
                (f"/{name}/checkpoint", None, 200),
            ):
                with row(path, status):
                    found, text = _fetched(url + path, body)
                    assert found == status
    assert text.startswith(note_of(7))
    assert text.count("\u2014 example.org/witness1 ") == 2


def _fetched(url, body):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""
    except urllib.error.URLError:  # it ended the connection while more was sent
        return 413, ""


def test_keys_are_made_once_and_read_again(tmp_path, monkeypatch, capsys):
    """Nobody else can read their file."""
    path = tmp_path / "witness.key"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["witness.py", *map(str, arguments)])
        return PROGRAM.main(), capsys.readouterr().out

    code, made = run("keygen", "example.org/w", "--key", path)
    assert (code, path.stat().st_mode & 0o777, len(made.splitlines())) == (0, 0o600, 2)
    assert run("keys", "--key", path) == (0, made)
    assert run("keygen", "example.org/w", "--key", path)[0] == 2
    assert run("keygen", "a b", "--key", tmp_path / "other")[0] == 2
    assert run("serve", "--key", path, "--state", tmp_path / "s", "--log", "x")[0] == 2


def test_it_stands_alone(tmp_path):
    """It imports the standard library and `cryptography`, and starts in a process of its own."""
    assert imported(SCRIPT) <= sys.stdlib_module_names | {"cryptography"}
    done = subprocess.run(
        [sys.executable, SCRIPT, "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
