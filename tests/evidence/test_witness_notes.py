"""What the witness (deploy/witness) takes for a log's key, and for a checkpoint to sign."""

import base64
from hashlib import sha256

import pytest

from tests.evidence.checkpointing import KEY
from tests.evidence.witnesses import PROGRAM, TestWitness
from tests.tables import every_row

NAME, ROOT = KEY.name, "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="
EMPTY = base64.b64encode(sha256().digest()).decode()
ORIGIN = f"{NAME}/live/lin_1"
OF_LOGS = bytes([PROGRAM.NOTE]) * 33
STRANGE = f"\u2014 example.net/other {base64.b64encode(bytes(68)).decode()}\n"


def test_a_log_has_a_key_of_its_own_kind():
    """A witness that took another for one would sign for nobody, and not say so."""
    text, (_, number, encoded) = KEY.public_text, KEY.public_text.rsplit("+", 2)
    with every_row() as row:
        for given, key in (
            (text, (NAME, b"\x01" + KEY.public)),
            (f" {text}\n", (NAME, b"\x01" + KEY.public)),
            (PROGRAM.key_text("n" * 200, OF_LOGS), ("n" * 200, OF_LOGS)),
        ):
            with row(given[:20]):
                assert PROGRAM.LogKey.parse(given) == key
        for given in (
            "",
            PROGRAM.key_text("", OF_LOGS),
            PROGRAM.key_text("a b", OF_LOGS),
            PROGRAM.key_text("n" * 201, OF_LOGS),
            PROGRAM.key_text("n", b"\x04" + KEY.public),
            PROGRAM.key_text("n", b"\x01" + KEY.public[1:]),
            PROGRAM.key_text("n", b"\x01" + KEY.public + b"\0"),
            f"{NAME}+{'0' * 8}+{encoded}",
            f"{NAME}+{number}+{encoded[:-1]}",
            f"{NAME}+{number}+{encoded[:-4]}!!!!",
            f"other{text}",
        ):
            with row(given), pytest.raises(ValueError, match=r"expected|belong|base64|padding"):
                PROGRAM.LogKey.parse(given)


@pytest.fixture
def witness(tmp_path):
    """Yield a witness of the log."""
    made = TestWitness(tmp_path, 1, KEY)
    yield made
    made.state.close()


def texts():
    """Yield texts that the log's key signs, and the statuses that they get."""
    yield f"{ORIGIN}\n1\n{ROOT}\n", 200
    yield f"{NAME}\n1\n{ROOT}\n", 200
    yield f"{NAME}/nothing\n0\n{EMPTY}\n", 200
    yield f"{NAME}/largest\n{2**63 - 1}\n{ROOT}\n", 200
    for size in ("", "01", "+1", "-1", " 1", "1 ", "1.0", "\u0661", str(2**63), "9" * 20):
        yield f"{NAME}/live/lin_2\n{size}\n{ROOT}\n", 400
    for root in ("", ROOT[:-1], ROOT[4:], f"{ROOT[:-2]}J=", f"{ROOT} ", f" {ROOT}"):
        yield f"{NAME}/live/lin_2\n1\n{root}\n", 400
    for more in ("\n", "more\n", "\nmore\n", "\n\n"):
        yield f"{NAME}/live/lin_2\n1\n{ROOT}\n{more}", 400
    yield f"{NAME}/live/lin_2\n1\n", 400
    yield f"\n1\n{ROOT}\n", 400
    for length, status in ((255, 200), (256, 400)):
        origin = f"{NAME}/\u00e4"
        origin += "x" * (length - len(origin.encode()))
        yield f"{origin}\n1\n{ROOT}\n", status
    yield f"{NAME}x/live/lin_1\n1\n{ROOT}\n", 404
    yield f"{NAME[:-1]}\n1\n{ROOT}\n", 404


def test_a_checkpoint_has_three_lines_of_one_spelling(witness):
    """Whatever the log signs: a second spelling would be a second checkpoint of that size."""
    with every_row() as row:
        for text, status in texts():
            with row(text):
                answer = witness.answer(f"old 0\n\n{KEY.sign(text)}".encode())
                assert answer.status == status, answer.body


def notes():
    """Yield notes of a genuine checkpoint, and the statuses that they get."""
    text = f"{ORIGIN}\n1\n{ROOT}\n"
    note = KEY.sign(text)
    line = note.rpartition("\n\n")[2]
    wrong = KEY.sign(f"{ORIGIN}\n2\n{ROOT}\n").rpartition("\n\n")[2]
    yield "no signature", f"{text}\n", 400
    yield "no text", f"\n\n{line}", 400
    yield "no last line end", note[:-1], 400
    yield "a line more", f"{note}\n", 400
    yield "a control character", note.replace("\u2014", "\t\u2014", 1), 400
    yield "no signature's line", f"{note}\u2014 example.net/other\n", 400
    yield "a signature of no base64", f"{note}\u2014 example.net/other AAAAA\n", 400
    yield "too many signatures", note + STRANGE * 100, 400
    yield "strange signatures alone", f"{text}\n{STRANGE}", 403
    yield "a wrong signature beside", note + wrong, 403
    strange = f"{NAME}/a\tb\n1\n{ROOT}\n"
    by_hand = base64.b64encode(KEY.key_id + KEY.signature(strange.encode())).decode()
    yield "a control character that is signed", f"{strange}\n\u2014 {NAME} {by_hand}\n", 400
    yield "as many signatures as can be", note + line * 2 + STRANGE * 97, 200


def test_a_note_is_read_like_a_verifier_does(witness):
    """Strange signatures are passed over, up to a hundred lines, and the log's is kept once."""
    with every_row() as row:
        for name, note, status in notes():
            with row(name):
                answer = witness.answer(f"old 0\n\n{note}".encode())
                assert answer.status == status, answer.body
    kept = witness.state.read(PROGRAM.origin_hash(ORIGIN))
    assert kept.count(f"\u2014 {NAME} ") == 1
    assert "example.net" not in kept
