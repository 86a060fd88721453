"""Policies of witnesses: what they are, and that both verifiers hold files to them alike."""

from pathlib import Path

import pytest

from service.cli.audit.checked import checked
from service.evidence.cosignature import WitnessKey
from service.evidence.demands import Demands
from service.evidence.export.export_verifier import verify_export
from service.evidence.export.format import EvidenceFault
from service.evidence.note import NoteInvalid
from service.evidence.policy import Policy, parse_policy
from tests.evidence.evidence_world import KEY
from tests.evidence.memory_log import FILES, sample
from tests.evidence.second_verifier import PROGRAM as SECOND
from tests.evidence.witnesses import PROGRAM, policy_text, three_witnesses
from tests.tables import every_row

A, B, C, D = (
    PROGRAM.key_text(f"example.org/{name}", PROGRAM.Cosigner(name, 4, name.encode() * 32).raw)
    for name in "abcd"
)
SAME_IDS = [
    PROGRAM.key_text("example.org/a", b"\x04" + number.to_bytes(32)) for number in (20_492, 38_708)
]
"""Two keys of one name and id, which has 32 bits: found in a moment."""
A_RENAMED = PROGRAM.key_text("example.com/a", PROGRAM.Cosigner("a", 4, b"a" * 32).raw)
LOG = KEY.public_text
HEAD = f"witness a {A}\nwitness b {B}\nwitness c {C} https://c.example.org\n"
GOOD = (
    f"{HEAD}quorum none\n",
    "quorum none",
    f"# a comment\n\n \t\n\t{HEAD}  quorum   c\t\n",
    f"{HEAD}group g any a b\nquorum g\n",
    f"log {LOG} https://log.example.com\n{HEAD}group g 2 a b c\nquorum g\n",
    f"{HEAD}witness d {D}\ngroup g all a b\ngroup h 1 c\ngroup i 2 g h d\nquorum i\n",
    f"log {PROGRAM.key_text('l' * 201, bytes([1] * 33))}\nquorum none\n",
    f"witness w {PROGRAM.key_text('w' * 200, bytes([4] * 33))}\nquorum w\n",
    f"{HEAD}# ünïcode\ngroup g\u00e4 3 a b c\nquorum g\u00e4\n",
)
NAMES = ("", "a b", "a//b", "/a", "a/", ".a", "a/.b", "a\u00a0b", "a\u200bb", "a\u2003b")
MANY = "".join(
    f"witness w{nr} {PROGRAM.key_text(f'w{nr}.example', bytes([4] + [nr] * 32))}\n"
    for nr in range(126)
)
BAD = (
    "",
    HEAD,
    "quorum a\n",
    f"{HEAD}quorum a\nquorum a\n",
    f"{HEAD}quorum d\n",
    f"quorum a\n{HEAD}",
    f"{HEAD}witness a {D}\nquorum a\n",
    f"{HEAD}witness d {A}\nquorum a\n",
    f"{HEAD}witness d {A.replace('example.org', 'example.com')}\nquorum a\n",
    f"{HEAD}witness d {A_RENAMED}\ngroup g all a d\nquorum g\n",
    f"log {KEY.private_text}\n{HEAD}quorum a\n",
    f"witness a {SAME_IDS[0]}\nwitness b {SAME_IDS[1]}\ngroup g all a b\nquorum g\n",
    f"{HEAD}witness none {D}\nquorum a\n",
    f"witness a {LOG}\nquorum a\n",
    f"witness a {A.replace('example.org', 'example.com')}\nquorum a\n",
    f"witness a {A[:-4]}\nquorum a\n",
    f"witness a {A} https://a.example.org more\nquorum a\n",
    f"{HEAD}group g 4 a b c\nquorum g\n",
    f"{HEAD}group g 0 a b c\nquorum g\n",
    f"{HEAD}group g 01 a b c\nquorum g\n",
    f"{HEAD}group g some a b c\nquorum g\n",
    f"{HEAD}group g any\nquorum g\n",
    f"{HEAD}group g any a a\nquorum g\n",
    f"{HEAD}group g any none\nquorum g\n",
    f"{HEAD}group g any g\nquorum g\n",
    f"{HEAD}group g any a b\ngroup h all b c\nquorum h\n",
    f"{HEAD}group a any b\nquorum a\n",
    f"{HEAD}quorum a\r\n",
    f"{HEAD}quorum a b\n",
    f"{HEAD}monitor a\nquorum a\n",
    f"log nonsense\n{HEAD}quorum a\n",
    f"log {LOG} https://log.example.com more\n{HEAD}quorum a\n",
    f"log {LOG}\nlog {LOG}\n{HEAD}quorum a\n",
    f"{HEAD}{'# ' + 'x' * 256_000}\nquorum a\n",
    f"{MANY}group g 1 {' '.join(f'w{nr}' for nr in range(65))}\nquorum g\n",
    f"{MANY}{HEAD}quorum a\n",
    *(f"witness w {PROGRAM.key_text(name, bytes([4] * 33))}\nquorum w\n" for name in NAMES),
    *(f"log {PROGRAM.key_text(name, bytes([1] * 33))}\nquorum none\n" for name in NAMES),
    *(
        f"witness w {PROGRAM.key_text('example.org/w', bytes([kind] * (1 + length)))}\nquorum w\n"
        for kind, length in ((4, 20), (4, 40), (4, 1312), (6, 32), (6, 1311), (5, 32))
    ),
    f"witness w {PROGRAM.key_text('w' * 201, bytes([4] * 33))}\nquorum w\n",
    f"witness w {PROGRAM.key_text('w' * 201, bytes([6] * 1313))}\nquorum w\n",
    f"witness w {PROGRAM.key_text('w', bytes([6] * 1313))[:-2]}Z=\nquorum w\n",
)


def test_both_read_the_same_policies():
    """As C2SP's tlog-policy has them."""
    with every_row() as row:
        for text in GOOD:
            with row(text[-40:]):
                parse_policy(text.encode())
                SECOND.Policy(text.encode())
        for text in BAD:
            with row(text[-40:]), pytest.raises(ValueError, match=r"policy|line|quorum"):
                parse_policy(text.encode())
            with row(text[-40:]), pytest.raises((SECOND.Fault, *SECOND.UNREADABLE)):
                SECOND.Policy(text.encode())


def test_a_quorum_is_counted_by_groups():
    """Whoever signs without being asked counts for nothing."""
    policy = parse_policy(GOOD[5].encode())
    keys = {name: one.key.which for name, one in policy.witnesses.items()}
    with every_row() as row:
        for signed, is_met in (
            ("", False),
            ("a", False),
            ("ac", False),
            ("abc", True),
            ("cd", True),
            ("abd", True),
            ("ad", False),
        ):
            with row(signed):
                assert policy.is_met({keys[name] for name in signed}) == is_met
    assert parse_policy(b"quorum none").is_met(())


@pytest.fixture
def witnesses(tmp_path):
    """Yield three witnesses of the sample's log."""
    with three_witnesses(tmp_path, KEY) as made:
        yield made


def test_files_are_held_to_a_policy_by_both(witnesses, tmp_path):
    """Exports and receipts; a cosignature that does not hold spoils a file, as ours would."""
    log = sample()
    policy = policy_text(2, *witnesses).encode()
    for name, make in FILES.items():
        path = tmp_path / name.replace(" ", "-")
        path.write_bytes(make(log))
    lines = [one.answer(f"old 0\n\n{log.note()}".encode()).body.decode() for one in witnesses]
    wrong = witnesses[2].answer(f"old 0\n\n{log.note()}".encode())
    assert wrong.status == 409
    other = lines[1].replace("witness2", "witness1")
    with every_row() as row:
        for added, is_met in (
            ([], False),
            (lines[:1], False),
            (lines[:2], True),
            (lines, True),
            ([lines[2], lines[0]], True),
            ([lines[0], lines[0]], False),
            ([lines[0], other], False),
            ([*lines[:2], _flipped(lines[2])], False),
        ):
            for name in FILES:
                path = tmp_path / name.replace(" ", "-")
                text = path.read_text()
                written = tmp_path / "cosigned"
                plain, full = log.note(), log.note() + "".join(added)
                as_json = [one.replace("\n", "\\n") for one in (plain, full)]
                assert text.count(as_json[0]) == 1
                written.write_text(text.replace(*as_json))
                with row(name, len(added), is_met):
                    assert _first(written, parse_policy(policy)) == is_met
                    assert _second(written, policy) == is_met
                    assert _first(written, None), "who asks for no witness ignores them"
                    assert _second(written, None)


def _flipped(lines: str) -> str:
    """Return lines of which the first has another time."""
    first, *rest = lines.splitlines(keepends=True)
    head, name, text = first.split(" ")
    at = len(text) - 10
    return "".join([" ".join([head, name, text[:at] + "AAAA" + text[at + 4 :]]), *rest])


def _first(path: Path, policy: Policy | None) -> bool:
    if path.read_text().startswith('{"format":"claim-ledger receipt'):
        try:
            return checked(path, [KEY], None, Demands(policy))["ok"]
        except EvidenceFault:
            return False
    return verify_export(path, [KEY], None, demands=Demands(policy)).ok


def _second(path: Path, policy: bytes | None) -> bool:
    keys = {}
    SECOND.parse_key(KEY.public_text, keys)
    with path.open("rb") as file:
        held = SECOND.Demands(SECOND.Policy(policy) if policy else None)
        return SECOND.verdict_or_fault(file, keys, None, held)["ok"]


def test_ml_dsa_is_verified_where_it_can_be_and_else_said_to_be_skipped(
    witnesses, tmp_path, monkeypatch
):
    """A cosignature that nobody looked at counts for nothing, and is named."""
    log, path = sample(), tmp_path / "receipt"
    raw = FILES["receipt.json"](log).decode()
    plain, lines = log.note(), witnesses[0].answer(f"old 0\n\n{log.note()}".encode()).body.decode()
    ed, ml = (PROGRAM.key_text(one.name, one.raw) for one in witnesses[0].cosigners)
    both = f"witness ed {ed}\nwitness ml {ml}\ngroup "
    full = plain + lines
    keys = {}
    SECOND.parse_key(KEY.public_text, keys)

    def told(note, quorum):
        path.write_text(raw.replace(*(one.replace("\n", "\\n") for one in (plain, note))))
        with path.open("rb") as file:
            held = SECOND.Demands(SECOND.Policy(f"{both}g {quorum}\nquorum g\n".encode()))
            return SECOND.verdict_or_fault(file, keys, None, held)

    assert told(full, "all ed ml")["witnesses"] == ["ed", "ml"]
    assert "witnesses_not_verified" not in told(full, "all ed ml")
    assert told(full, "any ml")["ok"]
    message = "a cosignature does not hold"
    ed_line, ml_line = lines.splitlines(keepends=True)
    at = len(ml_line) - 40
    spoilt = (
        plain + ed_line + ml_line[:at] + ("A" if ml_line[at] != "A" else "B") + ml_line[at + 1 :]
    )
    assert told(spoilt, "any ed")["fault"] == message
    monkeypatch.setattr(SECOND, "import_module", _missing)
    assert told(full, "any ed ml")["witnesses"] == ["ed"]
    assert told(full, "any ed ml")["witnesses_not_verified"] == ["ml"]
    fault = told(full, "all ed ml")["fault"]
    assert "quorum of witnesses is not reached" in fault
    assert fault.endswith("no `cryptography` with ML-DSA-44 is here: ml")
    with pytest.raises((SECOND.Fault, *SECOND.UNREADABLE)):
        SECOND.Policy(f"witness ml {_key(6, bytes(32))}\nquorum ml\n".encode())


def _missing(name):
    raise ImportError(name)


def _key(kind: int, public: bytes) -> str:
    return PROGRAM.key_text("example.org/w", bytes([kind]) + public)


def test_both_kinds_of_cosignatures_hold_for_their_checkpoint_alone(witnesses):
    """Ed25519 and ML-DSA-44, under their key, for this text and time."""
    log = sample()
    log.lines(1)
    text = log.note().partition("\n\n")[0] + "\n"
    lines = witnesses[0].answer(f"old 0\n\n{log.note()}".encode()).body.decode()
    policies = [
        parse_policy(f"witness w {PROGRAM.key_text(one.name, one.raw)}\nquorum w".encode())
        for one in witnesses[0].cosigners
    ]
    for policy in policies:
        assert policy.demand(log.note() + lines)["w"].timestamp() == witnesses[0].now
        moved = log.note().replace(text, text.replace("lin_2", "lin_3"))
        with pytest.raises(NoteInvalid, match="does not hold"):
            policy.demand(moved + lines)
    for key in witnesses[0].keys:
        with pytest.raises(NoteInvalid, match="does not hold"):
            key.cosigned_at(text, b"")


@pytest.mark.parametrize("text", [LOG, A.replace("+B", "+C"), f"{'n' * 201}+00000000+BA=="])
def test_other_keys_are_no_witness_s(text):
    """Of another type, of another length, or too long a name."""
    with pytest.raises(ValueError, match=r"expected|at most|belong"):
        WitnessKey.parse(text)
