"""Signed notes and checkpoints: the published vectors, and what both verifiers must refuse."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteInvalid, NoteKey
from tests.evidence.second_verifier import PROGRAM, opened

# Of the note package of Go's checksum database (golang.org/x/mod/sumdb/note).
PUBLIC = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PRIVATE = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
LINE = (
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngo"
    "tpRZb6KE6RyyBwJnAM=\n"
)
NOTE = f"{TEXT}\n{LINE}"

PETER = NoteKey.parse(PUBLIC)
OURS = NoteKey.of_seed("example.com/claim-ledger", bytes(32))
OTHER = NoteKey.of_seed("example.com/claim-ledger", b"\x01" * 32)
REFUSED = (PROGRAM.Fault, *PROGRAM.UNREADABLE)
"""What the second verifier raises."""
ROOT = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I="

TEXTS = st.text(max_size=60)
NEARLY = st.lists(
    st.sampled_from(
        ["\n", "\n\n", "\u2014 ", "PeterNeumann ", LINE, LINE[15:], TEXT, "a", "=", "0", ROOT, " "]
    ),
    max_size=8,
).map("".join)


def test_the_published_note_opens():
    """Its text is returned byte for byte."""
    assert opened(NOTE, [PETER]) == TEXT


def test_the_published_key_signs_the_published_note():
    """Ed25519 is deterministic, so the note is identical."""
    key = NoteKey.parse(PRIVATE)
    assert (key.public_text, key.private_text) == (PUBLIC, PRIVATE)
    assert key.sign(TEXT) == NOTE
    assert "AYEK" not in repr(key)


@pytest.mark.parametrize(
    "text",
    [
        *("x\n", "\n", "\n\n\n", "a\n\nb\n", "a\n\n", "ed è subito sera.\n", f"{LINE}\n{LINE}"),
        "\x20\x7f\x80\x85\x9f\n",
    ],
)
def test_text_is_kept_as_it_is(text):
    """Empty lines are kept: only the last one separates text and signatures.

    So are the control characters that are not below U+0020.
    """
    assert opened(OURS.sign(text), [OURS]) == text


@pytest.mark.parametrize("name", ["a//b", "/a", "a/", "..", "a/../b", ".", "a/.b"])
def test_an_unpublishable_key_name_is_refused(name):
    """It is refused when the key is made or read, not at the first checkpoint."""
    with pytest.raises(ValueError, match="no part of a key's name"):
        NoteKey.of_seed(name, bytes(32))


def test_other_signatures_are_ignored():
    """Up to a hundred of them, before and after ours, with our name or our key id."""
    signed = OURS.sign(TEXT)
    by_other = OTHER.sign(TEXT).removeprefix(f"{TEXT}\n")
    same_id = "\u2014 example.com/other " + base64.b64encode(OURS.key_id + bytes(64)).decode()
    strange = "\u2014 witness.example.com " + base64.b64encode(bytes(5000)).decode()
    note = f"{TEXT}\n{by_other}{same_id}\n{strange}\n" + signed.removeprefix(f"{TEXT}\n")
    assert opened(note, [OURS]) == TEXT
    assert opened(signed + by_other * 99, [OURS]) == TEXT
    with pytest.raises(NoteInvalid, match="more than 100"):
        opened(signed + by_other * 100, [OURS])


@pytest.mark.parametrize("keys", [[], [OURS], [OTHER, OURS]])
def test_a_note_without_a_known_signature_is_refused(keys):
    """This holds however many keys are known."""
    with pytest.raises(NoteInvalid, match="no key that is known"):
        opened(NOTE, keys)


def test_one_wrong_signature_of_a_known_key_refuses_the_note():
    """Even if another known key's signature is valid."""
    wrong = OTHER.sign("another text\n").rpartition("\n\n")[2]
    with pytest.raises(NoteInvalid, match="does not hold"):
        opened(OURS.sign(TEXT) + wrong, [OURS, OTHER])
    assert opened(OURS.sign(TEXT) + wrong, [OURS]) == TEXT


@pytest.mark.parametrize(
    "note",
    [
        "",
        TEXT,
        LINE,
        f"{TEXT}{LINE}",
        f"{TEXT}\n",
        f"{TEXT}\n\n",
        f"{TEXT}\n{LINE[:-1]}",
        f"{TEXT}\n{LINE}\n",
        f"{TEXT}\n{LINE}trailing\n",
        f"{TEXT}\n{LINE[:-1]} \n",
        f"{TEXT}\n{LINE[:-1]} more\n",
        NOTE.replace("\u2014 ", "\u2014  "),
        NOTE.replace("\u2014 ", "- "),
        NOTE.replace("\u2014 ", "\u2014\u00a0"),
        NOTE.replace("PeterNeumann ", "Peter+Neumann "),
        NOTE.replace("PeterNeumann ", "PeterNeumann\u2003"),
        NOTE.replace("PeterNeumann ", " "),
        f"{NOTE}\u2014 of\u2003another AAAAAAA=\n",
        f"{TEXT}\n\u2014 PeterNeumann x08gow==\n{LINE}",
        f"{TEXT}\n\u2014 PeterNeumann x08go\n{LINE}",
        NOTE.replace("\n", "\r\n"),
        f"\x00{NOTE}",
        f"\x1b{NOTE}",
        f"\t{NOTE}",
        f"\ud800{NOTE}",
        "x" * 1_000_000 + NOTE,
    ],
)
def test_malformed_notes_are_refused(note):
    """Even if the signature is valid."""
    with pytest.raises(NoteInvalid):
        opened(note, [PETER])


def test_every_flipped_bit_is_noticed():
    """In the text, the dash, the name and the signature."""
    raw = NOTE.encode()
    for bit in range(len(raw) * 8):
        altered = bytearray(raw)
        altered[bit // 8] ^= 1 << bit % 8
        try:
            text = altered.decode()
        except UnicodeDecodeError:
            continue
        with pytest.raises(NoteInvalid):
            opened(text, [PETER])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        PUBLIC.replace("c74f20a3", "c74f20a4"),
        PUBLIC.replace("PeterNeumann", "Peter"),
        PUBLIC.replace("PeterNeumann", "Peter Neumann"),
        PUBLIC.replace("+c74f20a3", "+C74F20A3"),
        PUBLIC[:-4],
        PUBLIC.replace("+AR", "+AQ"),
        PUBLIC.replace("+AR", "+BR"),
        PRIVATE.replace("AYEK", "AYEL"),
        f"{PUBLIC}\n",
        f" {PUBLIC}",
    ],
)
def test_malformed_keys_are_refused(text):
    """The message quotes nothing of the key."""
    with pytest.raises(ValueError, match="expected") as refused:
        NoteKey.parse(text)
    with pytest.raises(REFUSED):
        PROGRAM.parse_key(text, {})
    assert "ARpc" not in str(refused.value)
    assert "AYE" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u2003b", "a\nb", "a\x1bb", "\ud800"])
def test_ambiguous_key_names_are_refused(name):
    """In a note such a name could not be told from others."""
    with pytest.raises(ValueError, match="neither spaces nor"):
        NoteKey.generate(name)


def test_unopenable_texts_are_not_signed():
    """Nothing is signed that could not be opened."""
    for text in ("", "no newline", "a\tb\n", "\ud800\n"):
        with pytest.raises(ValueError, match="a note's text"):
            OURS.sign(text)
    with pytest.raises(ValueError, match="public key cannot sign"):
        PETER.sign(TEXT)


@given(st.one_of(TEXTS, NEARLY))
def test_any_text_is_opened_or_refused(text):
    """No other error is raised, and what opens is signed."""
    try:
        found = opened(text, [PETER])
    except NoteInvalid:
        return
    assert found == TEXT
    assert text.startswith(NOTE)


@given(st.one_of(TEXTS, st.lists(st.sampled_from([PUBLIC, "+", "A", "="])).map("".join)))
def test_any_text_is_a_key_or_refused(text):
    """No other error is raised, and a key is written back unchanged."""
    try:
        key = NoteKey.parse(text)
    except ValueError:
        return
    assert key.public_text == text


@given(st.binary(min_size=32, max_size=32), st.text(min_size=1, max_size=40))
def test_what_is_signed_opens(seed, text):
    """Any text that a note may contain."""
    key = NoteKey.of_seed("example.com/k", seed)
    try:
        note = key.sign(f"{text}\n")
    except ValueError:
        assert any(ord(one) < 32 and one != "\n" for one in text) or not text.isprintable()
        return
    assert opened(note, [NoteKey.parse(key.public_text)]) == f"{text}\n"


def test_the_published_checkpoint_is_read_and_written():
    """The specification's example, which is identical when signed again."""
    parsed = Checkpoint.parse(f"example.com/behind-the-sofa\n20852163\n{ROOT}\n")
    assert parsed.origin == "example.com/behind-the-sofa"
    assert parsed.size == 20_852_163
    assert parsed.root == base64.b64decode(ROOT)
    assert Checkpoint.open(parsed.sign(OURS), [OURS]) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n\n",
        "o\n1\n",
        f"o/live/lin_1\n0\n{ROOT}\nextension\nanother\n",  # C2SP's: of no meaning here
        f"o\n1\n{ROOT}",
        f"\n1\n{ROOT}\n",
        f"o\n01\n{ROOT}\n",
        f"o\n-1\n{ROOT}\n",
        f"o\n+1\n{ROOT}\n",
        f"o\n1_0\n{ROOT}\n",
        f"o\n\u0661\n{ROOT}\n",
        f"o\n9223372036854775808\n{ROOT}\n",
        f"o\n\n{ROOT}\n",
        f"o\n1\n{ROOT[4:]}\n",
        f"o\n1\n{ROOT} \n",
        f"o\n1\n{ROOT[:-2]}J=\n",
        f"o\n1\n{ROOT}\n\n",
        f"o\n1\n{ROOT}\n\nextension\n",
    ],
)
def test_malformed_checkpoints_are_refused(text):
    """Even in a valid note."""
    with pytest.raises(NoteInvalid, match="not a checkpoint"):
        Checkpoint.parse(text)
    with pytest.raises(REFUSED):
        PROGRAM.open_checkpoint(OURS.sign(text), {(OURS.name, OURS.key_id): OURS.public})


@given(st.one_of(TEXTS, NEARLY))
def test_any_text_is_a_checkpoint_or_refused(text):
    """No other error is raised."""
    try:
        found = Checkpoint.parse(text)
    except NoteInvalid:
        return
    assert text.startswith(found.origin)
    assert len(found.root) == 32


def test_the_origin_names_the_ledger():
    """The ledger is the part of the origin before the lineage."""
    root = bytes(32)
    assert Checkpoint("example.com/claim-ledger/live/lin_1", 1, root).ledger == "live"
    assert Checkpoint("live", 1, root).ledger == ""
