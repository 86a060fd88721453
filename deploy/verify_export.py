"""Verify an export, a receipt or another proof of claim-ledger with Python 3.11 alone.

    python verify_export.py FILE --public-key KEY [--public-key KEY …] [--checkpoint OLD]
        [--policy POLICY] [--time-anchor CERTIFICATE] [--streams NOTE]

FILE is what `claim-ledger audit export`, `prove`, `consistency` or `history` wrote; beside a
`.tlog-proof` or a `.cose` there is its `.entry`. KEY is a public
key that you got from the operator, not from FILE. OLD is an older checkpoint that you kept: FILE
has to continue it. POLICY names witnesses, and how many of them have to have signed FILE's
checkpoint; ML-DSA-44 is verified where `cryptography` 47 or later is installed, and elsewhere the
verdict says whose cosignatures were not. CERTIFICATE is that of a time-stamping authority's root,
in PEM: FILE's checkpoint has to be stamped under it. For that alone it runs `openssl`, since
verifying CMS and certificates takes more than one file. NOTE is a note of the index of streams, to
compare with an export of all events, in place of OLD.
It prints one JSON object, the verdict, and exits with 0 if FILE holds, with 1 if it does not, and
with 2 if it was called wrongly.

This file shares no code with the service, needs no network, and the standard library alone.
It follows docs/ledger-format.md; what stands in quotation marks below is quoted from there. Read it
from the end: `main`, then `verify`, then what they call.
"""

import argparse
import json
import re
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from hashlib import sha256, sha512
from importlib import import_module
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn

Keys = dict[tuple[str, bytes], bytes]
"""The public keys that were given, 32 bytes each, by name and id."""

UNREADABLE: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What Python raises where something has not the shape that it should have."""

# ---------------------------------------------------------------------------------------- Faults


class Fault(Exception):
    """Something does not hold: `sentence` says what, `position` where, if that is known."""

    def __init__(self, position: int | None, sentence: str) -> None:
        """Keep both."""
        super().__init__(sentence)
        self.position = position
        self.sentence = sentence


def demand(holds: object, position: int | None, sentence: str) -> None:
    """Raise a fault unless something holds."""
    if not holds:
        raise Fault(position, sentence)


@contextmanager
def reading(position: int | None) -> Generator[None]:
    """Turn whatever cannot be read within into a fault at a position."""
    try:
        yield
    except UNREADABLE as error:
        raise Fault(position, "of no known shape") from error


# --------------------------------------------- Signatures: Ed25519 (RFC 8032, sections 5.1 and 6)

Point = tuple[int, int, int, int]
"""A point of the curve in extended coordinates (section 5.1.4): x = X/Z, y = Y/Z, x·y = T/Z."""

PRIME: Final = 2**255 - 19
ORDER: Final = 2**252 + 27742317777372353535851937790883648493
D: Final = -121665 * pow(121666, -1, PRIME) % PRIME
NEUTRAL: Final = (0, 1, 1, 0)
SIGNATURE_BYTES: Final = 64


def add(p: Point, q: Point) -> Point:
    """Add two points (section 5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % PRIME, (p[1] + p[0]) * (q[1] + q[0]) % PRIME
    c, d = 2 * p[3] * q[3] * D % PRIME, 2 * p[2] * q[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def times(scalar: int, point: Point) -> Point:
    """Multiply a point by doubling and adding."""
    total = NEUTRAL
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def decompressed(raw: bytes) -> Point:
    """Return the point of 32 bytes: y, and one bit of x (section 5.1.3)."""
    y, sign = int.from_bytes(raw, "little") & (1 << 255) - 1, raw[31] >> 7
    x_squared = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    x = pow(x_squared, (PRIME + 3) // 8, PRIME)
    if (x * x - x_squared) % PRIME:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    is_point = y < PRIME and (x * x - x_squared) % PRIME == 0 and (x or not sign)
    demand(is_point, None, "the key is no point")
    x = x if x & 1 == sign else PRIME - x
    return x, y, 1, x * y % PRIME


def compressed(point: Point) -> bytes:
    """Return the 32 bytes of a point (section 5.1.2)."""
    inverse = pow(point[2], -1, PRIME)
    x, y = point[0] * inverse % PRIME, point[1] * inverse % PRIME
    return (y | (x & 1) << 255).to_bytes(32, "little")


BASE: Final = decompressed(bytes.fromhex("58" + "66" * 31))


def is_signature(public: bytes, signature: bytes, text: bytes) -> bool:
    """Return whether 64 bytes are the signature of a text under a public key (section 5.1.7)."""
    half, scalar = signature[:32], int.from_bytes(signature[32:], "little")
    digest = int.from_bytes(sha512(half + public + text).digest(), "little") % ORDER
    point = add(times(scalar % ORDER, BASE), times(ORDER - digest, decompressed(public)))
    return len(signature) == SIGNATURE_BYTES and scalar < ORDER and compressed(point) == half


# ------------------------------------------------------------ The tree (RFC 6962, section 2.1)


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return an inner node.

    "An inner node is the SHA-256 of the byte 0x01, the left hash and the right hash."
    """
    return sha256(b"\x01" + left + right).digest()


def grow(edge: list[bytes], size: int, leaf: bytes) -> None:
    """Add a leaf to the right edge of a tree of `size` leaves.

    "To add a leaf to a tree of *n* leaves: while *n* is odd, replace the leaf by the node of the
    last hash and the leaf, drop that last hash, and halve *n*, rounding down; then add the result
    at the end."
    """
    while size & 1:
        leaf, size = node_hash(edge.pop(), leaf), size >> 1
    edge.append(leaf)


def root_of(edge: list[bytes]) -> bytes:
    """Return the root of a tree by its right edge.

    "To get the root, join the hashes from the right: the last two, then the one before them with
    the result, and so on." And "The root of no leaves is the SHA-256 of nothing."
    """
    last = edge[-1] if edge else sha256().digest()
    return reduce(lambda right, left: node_hash(left, right), edge[-2::-1], last)


def split(size: int) -> int:
    """Return how many leaves are left of the top of a tree.

    "A tree of *n* > 1 leaves splits at the largest power of two smaller than *n*."
    """
    return 1 << (size - 1).bit_length() - 1


def root_by_inclusion(index: int, size: int, leaf: bytes, proof: list[bytes]) -> bytes:
    """Return the root that a leaf leads to by a proof of inclusion (RFC 9162, section 2.1.3).

    Take the hashes from the end of `proof`, which is nearest to the root; an absent one is empty.
    """
    if size == 1:
        return leaf
    left, other = split(size), proof.pop() if proof else b""
    if index < left:
        return node_hash(root_by_inclusion(index, left, leaf, proof), other)
    return node_hash(other, root_by_inclusion(index - left, size - left, leaf, proof))


def roots_by_consistency(
    old_size: int, size: int, old_root: bytes | None, proof: list[bytes]
) -> tuple[bytes, bytes]:
    """Return the old and the new root that a proof of consistency leads to (section 2.1.4).

    Take the hashes from the end of `proof`, as above. `old_root` stands for the old tree itself;
    None: it is not at the left edge here, and so the proof has its hash.
    """
    if old_size == size:
        root = old_root or (proof.pop() if proof else b"")
        return root, root
    left, other = split(size), proof.pop() if proof else b""
    if old_size <= left:
        old, new = roots_by_consistency(old_size, left, old_root, proof)
        return old, node_hash(new, other)
    old, new = roots_by_consistency(old_size - left, size - left, None, proof)
    return node_hash(other, old), node_hash(other, new)


# -------------------------------------------------------- Lines, as expressions of their spelling

NUMBER: Final = "(?:0|[1-9][0-9]{0,18})"
POSITIVE: Final = "[1-9][0-9]{0,18}"
LINE_BYTES_MAX: Final = 2**26
DIGITS_MAX: Final = 1000
DEPTH_MAX: Final = 100
STATE_BYTES_MAX: Final = 2**24
STRING: Final = r'"(?:[^"\\]|\\.)*+"'
BASE64: Final = "[A-Za-z0-9+/]"
HASH: Final = BASE64 + "{42}[AEIMQUYcgkosw048]="
UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HASHES: Final = rf'\[(?:"{HASH}"(?:,"{HASH}")*+)?\]'
ROOT: Final = rf'"root":"{HASH}"'
ENTITY: Final = "[A-Za-z0-9_-]{1,64}"
TOPIC: Final = "[A-Za-z0-9_]{1,200}"
HEADER: Final = (
    r'\{"format":"claim-ledger export v1","ledger":"(?:accounts|live|test)",'
    rf'"from":{POSITIVE},"size":{NUMBER},{ROOT}'
    rf'(?:,"entity":"{ENTITY}")?(?:,"tree":{HASHES})?'
    rf'(?:,"consistency":\{{"size":{POSITIVE},{ROOT},"proof":{HASHES}\}})?\}}'
)
EVENT: Final = (
    rf'\{{"position":{POSITIVE},"append_id":{POSITIVE},"originator_id":"{UUID}",'
    rf'"originator_version":{POSITIVE},"topic":"{TOPIC}","state":{STRING},"leaf_hash":"{HASH}"'
    rf'(?:,"proof":{HASHES})?\}}'
)
CHECKPOINT: Final = rf'\{{"checkpoint":{STRING}\}}'
AT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z"
RECEIPT_BEGINS: Final = '{"format":"claim-ledger receipt v1"'
RECEIPT: Final = (
    rf'\{RECEIPT_BEGINS},"ledger":"(?:live|test)","claim_id":{STRING},'
    rf'"events":\[{EVENT}(?:,{EVENT})*\],"checkpoint":{STRING}\}}'
)
EVENTS: Final = rf"\[{EVENT}(?:,{EVENT})*\]"
LEDGER: Final = '"ledger":"(?:accounts|live|test)"'
CONSISTENCY_BEGINS: Final = '{"format":"claim-ledger consistency v1"'
CONSISTENCY: Final = (
    rf'\{CONSISTENCY_BEGINS},{LEDGER},"older":{STRING},"proof":{HASHES}'
    rf'(?:,"lineages":{EVENTS})?,"checkpoint":{STRING}\}}'
)
STREAM: Final = rf'\{{"stream":"{UUID}","position":{POSITIVE},"proof":{HASHES}\}}'
ABSENCE_BEGINS: Final = '{"format":"claim-ledger absence v1"'
ABSENCE: Final = (
    rf'\{ABSENCE_BEGINS},"ledger":"(?:live|test)","epoch":{NUMBER},"partner_id":{STRING},'
    rf'"entity_id":{STRING},"partner_claim_id":{STRING},"index":{NUMBER}'
    rf'(?:,"before":{STREAM})?(?:,"after":{STREAM})?,"streams":{STRING},"checkpoint":{STRING}\}}'
)
HISTORY_BEGINS: Final = '{"format":"claim-ledger history v1"'
HISTORY_PART: Final = rf'\{{{LEDGER},"events":{EVENTS},"checkpoint":{STRING}\}}'
HISTORY: Final = (
    rf'\{HISTORY_BEGINS},"subject":{STRING},"ledgers":\[{HISTORY_PART}(?:,{HISTORY_PART})*\]\}}'
)

spell: Final[Callable[[object], str]] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode


def read_line(raw: bytes, position: int | None, pattern: str) -> dict[str, Any]:
    """Read a line of the file; `position` is where the fault is if it cannot be read.

    "A verifier MUST refuse any other spelling, so that no two readers can take a file for different
    things."
    """
    with reading(position):
        # "Numbers are whole and below 2^63": a larger one is spelled as another here.
        line = json.loads(raw, parse_int=lambda digits: int(digits) % 2**63)
        spelled = spell(line)
        is_spelled = f"{spelled}\n".encode() == raw
    holds = is_spelled and re.fullmatch(pattern, spelled)
    demand(holds, position, "a line is cut, not of this format, or not in its one spelling")
    return line


def read_rest(begun: bytes, file: BinaryIO) -> bytes:
    """Return the whole of a file that is read at once.

    "A file of one object, and a proof in a format of others, has at most 2^26 bytes."
    """
    raw = begun + file.read(LINE_BYTES_MAX)
    demand(len(raw) <= LINE_BYTES_MAX, None, "the file is larger than any of its kind")
    return raw


def read_state(event: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that an event's state is; raises ValueError if it is none.

    "A state that is read has no `NaN` or `Infinity`, and no escape of half a surrogate pair. No
    object in it has a member twice, and no whole number in it has more than 1,000 digits. Its
    objects and lists are nested at most 100 deep, the state itself included."
    """
    depth = 0
    for found in re.finditer(rf"{STRING}|[\[\]{{}}]", event["state"]):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > DEPTH_MAX:
            refuse("nested too deep")
    state = json.loads(
        event["state"], parse_constant=refuse, parse_int=bounded, object_pairs_hook=members
    )
    spell(state).encode()
    return state


def bounded(digits: str) -> int:
    """Return a whole number; raises ValueError for one of too many digits."""
    return int(digits) if len(digits.lstrip("-")) <= DIGITS_MAX else refuse("too many digits")


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raises ValueError for one that has a member twice."""
    return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("a member twice")


def refuse(constant: str) -> NoReturn:
    """Raise ValueError for what is no JSON, although Python reads it."""
    raise ValueError(constant)


def is_of(value: object, *kinds: type) -> bool:
    """Return whether a value has one of these types itself: True is no number."""
    return type(value) in kinds


def hashes(texts: list[str]) -> list[bytes]:
    """Return the hashes of a line."""
    return [b64decode(text) for text in texts]


# --------------------------------------------------------------------------- Notes and checkpoints

SIGNATURE: Final = rf"\u2014 ([^\s+]+) ((?:{BASE64}{{4}})+(?:{BASE64}{{2}}==|{BASE64}{{3}}=)?)"
CONTROL: Final = r"[\x00-\x09\x0b-\x1f]"
NOTE_MAX: Final = 1_000_000
SIGNATURES_MAX: Final = 100
KEY_ID_BYTES: Final = 4
OF_LOGS: Final = 0x01
ED25519: Final = 0x04
ML_DSA_44: Final = 0x06
ML_DSA_BYTES: Final = 1312
KEY_BYTES: Final = {OF_LOGS: 32, ED25519: 32, ML_DSA_44: ML_DSA_BYTES}
WITNESS_NAME_MAX: Final = 200


class Checkpoint(NamedTuple):
    """A signed checkpoint: the log `origin` had `size` events under this root."""

    origin: str
    size: int
    root: bytes


def parse_key(text: str, keys: Keys, *kinds: int) -> None:
    r"""Add a public key; raises Fault, or what is `UNREADABLE`, for what is none.

    "A public key is text: `<name>+<id, 8 hexadecimal digits>+<base64 of the byte 0x01 and the 32
    bytes of the key>`. Its id is the first four bytes of the SHA-256 of the name, `\n`, the byte
    0x01 and the 32 bytes." A witness's key has one of other `kinds` in place of 0x01, and "at most
    200 bytes of UTF-8" in its name.
    """
    name, number, encoded = text.split("+", 2)
    raw = b64decode(encoded, validate=True)
    # "The base64 is in its one spelling, and the key has the length of its type."
    holds = b64encode(raw).decode() == encoded and raw[0] in (kinds or (OF_LOGS,))
    demand(holds and len(raw) == 1 + KEY_BYTES[raw[0]], None, "a key of another kind")
    # "None of its parts between `/` is empty, or begins with a dot."
    holds = name.isprintable() and " " not in name and not re.search(r"(^|/)(\.|/|$)", name)
    holds = holds and (not kinds or len(name.encode()) <= WITNESS_NAME_MAX)
    demand(holds, None, "a name that no key has")
    demand(sha256(f"{name}\n".encode() + raw).hexdigest()[:8] == number, None, "no key")
    keys[name, bytes.fromhex(number)] = raw[1:]


def open_note(note: str, keys: Keys, position: int | None = None) -> list[str]:
    r"""Return the lines of a signed note's text.

    "The signature's base64 holds the key's id (4 bytes) and the 64 bytes of an Ed25519 signature
    (RFC 8032) over the three lines with their `\n`. Signatures by unknown keys are ignored. A
    verifier MUST refuse a note if no known key signed it, or if a signature by a known key does not
    hold." And "A note has at most 1,000,000 characters, of which none is a control character but
    `\n`, and at most 100 signatures, known or not; each has at least one byte after the id."
    """
    text, signatures = read_note(note, position)
    is_signed = False
    for which, signature in signatures:
        key = keys.get(which)
        if key is not None:
            is_signed = is_signature(key, signature, text.encode())
            demand(is_signed, position, "the signature does not hold")
    demand(is_signed, position, "signed by no key that was given")
    return text.removesuffix("\n").split("\n")


def read_note(
    note: str, position: int | None = None
) -> tuple[str, list[tuple[tuple[str, bytes], bytes]]]:
    """Return a note's text, and of each signature whose it is, by name and id, and its bytes."""
    is_note = len(note) <= NOTE_MAX and not re.search(CONTROL, note)
    text, _, signatures = note.rpartition("\n\n")
    lines = signatures.removesuffix("\n").split("\n")
    is_note = is_note and len(lines) <= SIGNATURES_MAX and signatures.endswith("\n")
    demand(is_note, position, "not a signed note")
    read: list[tuple[tuple[str, bytes], bytes]] = []
    for line in lines:
        found = re.fullmatch(SIGNATURE, line)
        raw = b64decode(found[2]) if found else b""
        if found is None or b64encode(raw).decode() != found[2] or len(raw) <= KEY_ID_BYTES:
            raise Fault(position, "not a signed note")
        read.append(((found[1], raw[:KEY_ID_BYTES]), raw[KEY_ID_BYTES:]))
    return f"{text}\n", read


def open_checkpoint(note: str, keys: Keys, position: int | None = None) -> Checkpoint:
    """Return a signed checkpoint: its origin, size and root are the three lines of the note.

    "A note with more lines, such as the extension lines of C2SP, is no checkpoint here."
    """
    origin, size, root, *more = *open_note(note, keys, position), "", ""
    demand(len(more) == len(("", "")), position, "no checkpoint")
    # "Numbers are whole and below 2^63", here too.
    holds = re.fullmatch(NUMBER, size) and int(size) < 2**63
    holds = holds and re.fullmatch(HASH, root) and origin
    demand(holds, position, "no checkpoint")
    return Checkpoint(origin, int(size), b64decode(root))


# -------------------------------------------------------------------------------------- Witnesses

POLICY_BYTES_MAX: Final = 256_000
NAMES_MAX: Final = 128
MEMBERS_MAX: Final = 64
TIME_BYTES: Final = 8
TIME_MAX: Final = 253_402_300_799
"""The last second of the year 9999."""


class Demands(NamedTuple):
    """What others have to have signed of a checkpoint."""

    policy: "Policy | None" = None
    anchor: Path | None = None

    def met_by(self, note: str) -> dict[str, Any]:
        """Return what they have signed; raises Fault where it is too little."""
        found: dict[str, Any] = (
            {} if self.policy is None else {"witnesses": self.policy.demand(note)}
        )
        if self.policy and self.policy.skipped:
            found["witnesses_not_verified"] = sorted(self.policy.skipped)
        return found | (
            {} if self.anchor is None else {"existed_before": stamped(note, self.anchor)}
        )


NO_DEMANDS: Final = Demands()


class Policy:
    """Whose cosignatures a checkpoint has to have: C2SP's `tlog-policy`."""

    def __init__(self, raw: bytes) -> None:
        """Read a policy file; raises ValueError or Fault for what is none."""
        self.keys: Keys = {}
        self.logs: Keys = {}
        self.names: dict[tuple[str, bytes], str] = {}
        self.groups: dict[str, tuple[int, list[str]]] = {}
        self.quorums: list[str] = []
        self.skipped: set[str] = set()
        """Witnesses whose ML-DSA-44 cosignatures could not be verified here."""
        text = raw.decode(errors="surrogateescape")
        is_text = len(raw) <= POLICY_BYTES_MAX and not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text)
        demand(is_text, None, "no policy")
        for line in text.split("\n"):
            words = line.replace("\t", " ").split(" ")
            kind, *given = [word for word in words if word] or ["#"]
            if not kind.startswith("#"):
                self.take(kind, given)
        demand(len(self.quorums) == 1, None, "a policy has one quorum")

    def take(self, kind: str, words: list[str]) -> None:
        """Take a line: `witness NAME KEY [URL]`, `group NAME COUNT NAME…`, `quorum NAME`.

        "A policy has at most 256,000 bytes, 128 witnesses and groups together, and 64 members in
        each group."
        """
        defined = {"none", *self.names.values(), *self.groups}
        is_full = len(defined) > NAMES_MAX
        demand(not is_full or kind not in {"witness", "group"}, None, "too many names")
        if kind == "witness" and len(words) in {2, 3}:
            known: Keys = {}
            parse_key(words[1], known, ED25519, ML_DSA_44)
            demand(words[0] not in defined and self.is_new(known), None, "a witness twice")
            self.keys |= known
            self.names |= dict.fromkeys(known, words[0])
        elif kind == "group" and len(words) > 2:  # noqa: PLR2004 - the least of a group
            name, count, *members = words
            demand(len(members) <= MEMBERS_MAX, None, "too many members")
            others = [member for _, group in self.groups.values() for member in group]
            demand(name not in defined, None, "a group twice")
            demand(len({*members, *others}) == len(members) + len(others), None, "a member twice")
            demand(set(members) <= defined - {"none"}, None, "a member that is not defined")
            counts = {"any": 1, "all": len(members)}
            least = int(count) if re.fullmatch("[1-9][0-9]{0,3}", count) else counts[count]
            demand(0 < least <= len(members), None, "no such count")
            self.groups[name] = least, members
        elif kind == "quorum" and len(words) == 1:
            demand(words[0] in defined, None, "no such witness or group")
            self.quorums += words
        else:
            # Keys of logs are given as arguments.
            demand(kind == "log" and len(words) in {1, 2}, None, "no line of a policy")
            log: Keys = {}
            parse_key(words[0], log)
            demand(self.is_new(log), None, "a key twice")
            self.logs |= log

    def is_new(self, known: Keys) -> bool:
        """Return whether neither a key nor its name and id are those of a line before."""
        before = self.keys | self.logs
        return not known.keys() & before.keys() and not {*known.values()} & {*before.values()}

    def is_met(self, name: str, signed: set[str]) -> bool:
        """Return whether a witness has signed, or enough members of a group."""
        if name not in self.groups:
            return name in signed or name == "none"
        least, members = self.groups[name]
        return sum(self.is_met(member, signed) for member in members) >= least

    def demand(self, note: str) -> list[str]:
        r"""Return which witnesses have signed a note; raises Fault if they are no quorum.

        "Its first 8 bytes are a time: the seconds since 1970, big-endian." A key of "byte 0x04, 32
        bytes" signs "`cosignature/v1\n`, `time <seconds, decimal>\n` and the three lines with
        their `\n`". `cryptography` verifies a signature of "byte 0x06, 1,312 bytes" if it is
        installed. If not, the signature does not count, and the witness is among the skipped ones.
        """
        text, signatures = read_note(note)
        signed: set[str] = set()
        self.skipped = set()
        for which, signature in signatures:
            if which in self.keys:
                seconds, key = int.from_bytes(signature[:TIME_BYTES], "big"), self.keys[which]
                if len(key) == ML_DSA_BYTES:
                    message = ml_dsa_message(which[0], signature[:TIME_BYTES], text)
                    holds = is_ml_dsa_signature(key, signature[TIME_BYTES:], message)
                else:
                    message = f"cosignature/v1\ntime {seconds}\n{text}".encode()
                    holds = is_signature(key, signature[TIME_BYTES:], message)
                is_sound = holds is not False and 0 < seconds <= TIME_MAX
                demand(is_sound, None, "a cosignature does not hold")
                (self.skipped if holds is None else signed).add(self.names[which])
        said = "the quorum of witnesses is not reached"
        if self.skipped:
            said += (
                f"; not verified, because no `cryptography` with ML-DSA-44 is here: "
                f"{', '.join(sorted(self.skipped))}"
            )
        demand(self.is_met(self.quorums[0], signed), None, said)
        return sorted(signed)


def ml_dsa_message(name: str, seconds: bytes, text: str) -> bytes:
    r"""Return what a witness signs by ML-DSA-44.

    "1. `subtree/v1\n` and the byte 0x00;"
    "2. a byte with the length of the witness's name, and the name;"
    "3. the time, as the same 8 bytes;"
    "4. a byte with the length of the origin, and the origin;"
    "5. 8 bytes 0x00;"
    "6. the size as 8 bytes, big-endian;"
    "7. the 32 bytes of the root."
    """
    origin, size, root, *_ = text.split("\n")
    names = [bytes([len(one.encode())]) + one.encode() for one in (name, origin)]
    numbers = bytes(8) + int(size).to_bytes(8, "big")
    return b"subtree/v1\n\0" + names[0] + seconds + names[1] + numbers + b64decode(root)


def is_ml_dsa_signature(public: bytes, signature: bytes, message: bytes) -> bool | None:
    """Return whether it is one, None where nothing here knows ML-DSA-44 (FIPS 204)."""
    try:
        module = import_module("cryptography.hazmat.primitives.asymmetric.mldsa")
        errors = import_module("cryptography.exceptions")
    except ImportError:
        return None
    try:
        module.MLDSA44PublicKey.from_public_bytes(public).verify(signature, message)
    except errors.UnsupportedAlgorithm:
        return None
    except errors.InvalidSignature:
        return False
    return True


# ------------------------------------------------------------------------------------------- Time

TIME_STAMP: Final = b"\xffclaim-ledger/rfc3161/v1"
OPENSSL_SECONDS_MAX: Final = 60


def stamped(note: str, anchor: Path) -> str:
    r"""Return when a note was stamped by an authority under a certificate; raises Fault.

    "Its key's id is the first four bytes of the SHA-256 of the authority's name, `\n`, the byte
    0xFF, `claim-ledger/rfc3161/v1`, and the SHA-256 of the DER of a certificate". "Its signature is
    a token of RFC 3161, whose imprint is the SHA-256 of the three lines with their `\n`."
    """
    text, signatures = read_note(note)
    pem = re.findall(r"-----BEGIN CERTIFICATE-----(.*?)-----END", anchor.read_text(), re.DOTALL)
    demand(len(pem) == 1, None, "expected one certificate")
    raw = TIME_STAMP + sha256(b64decode(pem[0])).digest()
    times: list[str] = []
    for (name, number), token in signatures:
        if sha256(f"{name}\n".encode() + raw).digest()[:KEY_ID_BYTES] == number:
            at = time_of(token)
            holds = openssl(
                token,
                *("-verify", "-digest", sha256(text.encode()).hexdigest(), "-CAfile", str(anchor)),
                *("-attime", str(int(at.timestamp()))),
            )
            demand(holds is not None, None, "a time stamp does not hold")
            times.append(f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z")
    demand(times, None, "no authority under this certificate has stamped it")
    return min(times)


def time_of(token: bytes) -> datetime:
    """Return the time in a token, which is verified afterwards; raises Fault."""
    told = openssl(token, "-reply", "-text") or ""
    found = re.search(r"^Time stamp: (\w+ +\d+ [\d:]+)(\.\d+)? (\d+) GMT$", told, re.MULTILINE)
    if found is None:
        raise Fault(None, "a time stamp has no time")
    at = datetime.strptime(f"{found[1]} {found[3]}", "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    # "A fraction of a second is rounded up to milliseconds."
    return at + timedelta(milliseconds=ceil(Decimal(found[2] or 0) * 1000))


def openssl(token: bytes, *arguments: str) -> str | None:
    """Return what `openssl ts` says of a token, None where it refuses; raises OSError."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "token"
        path.write_bytes(token)
        done = subprocess.run(  # noqa: S603 - the arguments are our own
            ["openssl", "ts", *arguments, "-in", str(path), "-token_in"],  # noqa: S607 - found on PATH
            capture_output=True,
            check=False,
            timeout=OPENSSL_SECONDS_MAX,
        )
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


# --------------------------------------------------------------------------------------- Lineages

LINEAGE_STREAMS: Final = {
    "accounts": "88943209-3975-8270-bad6-077bb7a3c8f1",
    "live": "333011c2-4cc1-89a2-8f7f-d1179f0d6f78",
    "test": "fe2debdc-0a90-8a74-aff6-86d3b26195fc",
}


def ledger_of(origin: str) -> str:
    """Return the ledger of an origin.

    "An origin has at least three parts, separated by `/`; the last is the lineage, and the one
    before it the ledger." Of any other there is none.
    """
    _, *parts = origin.split("/")
    return parts[-2] if len(parts) > 1 else ""


class Lineage(NamedTuple):
    """How a lineage began: what it follows ("" for a first one), and what they share."""

    follows: str
    shared_size: int
    followed_size: int


def begin_lineage(
    lineages: dict[str, Lineage], event: dict[str, Any], ledger: str, keys: Keys
) -> None:
    """Add the lineage that a `LineageBegun` begins, if the operator authorised it.

    "A lineage is a fault at its position if no known key signed its authorisation, or if the
    authorisation states anything else." And "An origin begins once, and neither with nor after a
    `previous` that names it." "A lineage comes after the events that it shares, and these are no
    more than `previous` has." "`previous` is of the present lineage, or of one that the log does
    not know."
    """
    data, position = read_state(event)["data"], event["position"]
    origin, previous, shared = data["origin"], data.get("previous"), data.get("shared_size")
    # "`origin`, `reason` and `authorisation` MUST be present and be text." In a first lineage
    # "`previous` and `shared_size` MUST both be absent or `null`".
    is_text = all(is_of(data[name], str) for name in ("origin", "reason", "authorisation"))
    demand(is_text and ledger_of(origin) == ledger, position, "the lineage is not of this log")
    has_past = is_of(previous, str) and is_of(shared, int)
    demand(has_past or previous is shared is None, position, "the lineage has half of a past")
    known = {*lineages, *(one.follows for one in lineages.values())}
    lineage, stated = Lineage("", 0, 0), ["-", "-", "-", "-"]
    if has_past:
        followed = open_checkpoint(previous, keys, position)
        stated = [followed.origin, f"{followed.size}", b64encode(followed.root).decode()]
        stated.append(f"{shared}")
        lineage = Lineage(followed.origin, shared, followed.size)
        demand(ledger_of(followed.origin) == ledger, position, "it follows another ledger")
        is_before = 0 <= shared < position and shared <= followed.size
        demand(is_before, position, "the lineage shares events that do not precede it")
        is_last = followed.origin == next(reversed(lineages), None)
        follows = is_last or followed.origin not in known
        demand(follows, position, "the lineage follows one that was followed already")
    demand(has_past or not lineages, position, "the lineage does not name what it follows")
    text = ["claim-ledger lineage v1", origin, *stated]
    is_authorised = open_note(data["authorisation"], keys, position) == text
    is_new = origin not in known and origin != lineage.follows
    demand(is_authorised and is_new, position, "the lineage is not authorised")
    lineages[origin] = lineage


def shared_with(checkpoint: Checkpoint, older: Checkpoint, lineages: dict[str, Lineage]) -> int:
    """Return how many events the logs of two checkpoints have in common.

    "To link origins, start at the newest one: its `LineageBegun` names the origin before in the
    first line of `previous`, and so on. An origin that is linked to nothing is refused."
    """
    origin, shared, unlinked = checkpoint.origin, checkpoint.size, dict(lineages)
    while origin != older.origin:
        lineage = unlinked.pop(origin, None)
        if lineage is None or not lineage.follows:
            raise Fault(None, "nothing here links the older checkpoint's origin")
        origin, shared = lineage.follows, min(shared, lineage.shared_size)
    return shared


# ----------------------------------------------------------------------------------------- Events


def leaf_of(event: dict[str, Any]) -> bytes:
    r"""Return the leaf that an event's columns make.

    "The record of an event is seven lines of text, each ended by `\n`"; "Its leaf is the SHA-256
    of the byte 0x00 followed by the record." A state is "at most 2^24 bytes".
    """
    names = ("position", "append_id", "originator_id", "originator_version", "topic")
    columns, state = [str(event[name]) for name in names], event["state"].encode()
    demand(len(state) <= STATE_BYTES_MAX, event["position"], "a longer state than any event has")
    record = "\n".join(["claim-ledger event v1", *columns, sha256(state).hexdigest(), ""])
    return sha256(b"\x00" + record.encode()).digest()


class Events:
    """The events of a file as they are read: each has to fit those before it."""

    def __init__(self, first: int, checkpoint: tuple[str, int, bytes], keys: Keys) -> None:
        """`first` is the first position that can come; the checkpoint is stated as of a ledger."""
        self.ledger, self.size, self.root = checkpoint
        self.keys = keys
        self.first = first
        self.last = first - 1
        self.count = 0
        self.lineages: dict[str, Lineage] = {}
        self.lineage_version = 0

    def take(self, event: dict[str, Any], edge: list[bytes] | None) -> None:
        """Verify the next event, and grow the tree by it.

        `edge` None: the file has only some events of the log, each with a proof. "Positions rise
        and do not exceed `size`; each event's proof leads from its leaf to `root`".
        """
        before, position = self.last, event["position"]
        demand(
            before < position <= self.size,
            position,
            "events are out of order, or beyond the checkpoint",
        )
        leaf = leaf_of(event)
        demand(leaf == b64decode(event["leaf_hash"]), position, "the event has another hash")
        has_proof = "proof" in event
        demand(has_proof == (edge is None), position, "a proof for each event, or for none")
        if edge is not None:
            grow(edge, before, leaf)
        else:
            proof = hashes(event["proof"])
            root = root_by_inclusion(position - 1, self.size, leaf, proof)
            holds = root == self.root and not proof
            demand(holds, position, "the event's proof does not lead to the root")
        self.last, self.count = position, self.count + 1

    def note_lineage(self, event: dict[str, Any]) -> None:
        """Remember the lineage that an event begins, if it is one that does.

        "An event of that topic begins a lineage only in one stream of each ledger". "The events of
        that stream MUST have consecutive versions, from 1 on if `from` is 1."
        """
        if event["originator_id"] != LINEAGE_STREAMS[self.ledger]:
            return
        version, position = event["originator_version"], event["position"]
        due = self.lineage_version + 1
        is_next = version == due or (self.lineage_version == 0 and self.first > 1)
        demand(is_next, position, "a lineage is missing")
        self.lineage_version = version
        if event["topic"] == "LineageBegun":
            with reading(position):
                begin_lineage(self.lineages, event, self.ledger, self.keys)

    def check_origin(self, origin: str) -> None:
        """Check whose the checkpoint is.

        "Its origin is that of the last lineage in the file. A file that begins at 1 has one".
        """
        begun = next(reversed(self.lineages), None)
        is_open = begun is None and (self.first > 1 or self.size == 0)
        demand(is_open or origin == begun, None, "the checkpoint is not of the present lineage")


# ------------------------------------------------------------------------------ Exports, receipts


def verify_export(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on an export, `raw` being its first line.

    "1. Read the header. Begin with `tree`, or with nothing, at size `from` − 1."
    "2. For each event: its position is the next one; its leaf is `leaf_hash`; grow the tree by it."
    "3. The next position is `size` + 1. The note is signed by a known key; its ledger, size and
    root are the header's. The root of the tree is that root."
    """
    header = read_line(raw, None, HEADER)
    first, size, root = header["from"], header["size"], b64decode(header["root"])
    edge = hashes(header.get("tree", [])) if "entity" not in header else None
    check_edge(header, edge)
    events = Events(first, (header["ledger"], size, root), keys)
    roots = {first - 1: root_of(edge)} if edge is not None else {}
    while not (raw := file.readline(LINE_BYTES_MAX)).startswith(b'{"checkpoint":'):
        expected = None if edge is None else events.last + 1
        demand(raw, expected, "the file ends without a checkpoint")
        event = read_line(raw, expected, EVENT)
        is_next = edge is None or event["position"] == expected
        demand(is_next, expected, "events are missing or out of order")
        events.take(event, edge)
        if edge is not None and older is not None and older.size == events.last:
            roots[events.last] = root_of(edge)
        events.note_lineage(event)
    note = read_line(raw, None, CHECKPOINT)["checkpoint"]
    demand(not file.read(1), None, "there is something behind the checkpoint")
    is_end = edge is None or events.last == size
    demand(is_end, events.last + 1, "events are missing before the checkpoint")
    checkpoint = open_checkpoint(note, keys)
    check_same_log(checkpoint, header["ledger"], size, root)
    if edge is not None:
        if older is not None and roots.get(older.size) == older.root and older.size < size:
            first = older.size + 1
        holds = root_of(edge) == root
        demand(holds, first, "events from here on do not make the root")
    roots = proved_roots(header, checkpoint) | roots | {size: root}
    events.check_origin(checkpoint.origin)
    part = {name: header[name] for name in ("from", "entity") if name in header}
    part |= demands.met_by(note)
    return verdict_of(checkpoint, part, events, older, roots)


def check_edge(header: dict[str, Any], edge: list[bytes] | None) -> None:
    """Check that the header's numbers fit each other.

    `tree` is there "only if `from` > 1 and there is no `entity`", and has one hash for each bit
    that is set in `from` − 1.
    """
    before, size = header["from"] - 1, header["size"]
    has_tree = edge is not None and before > 0
    holds = 0 <= before <= size and ("tree" in header) == has_tree
    holds = holds and len(edge or []) == (before.bit_count() if has_tree else 0)
    demand(holds, None, "the header does not fit itself")


def check_same_log(checkpoint: Checkpoint, ledger: str, size: int, root: bytes) -> None:
    """Check that a checkpoint is of this ledger, size and root."""
    stated = (ledger_of(checkpoint.origin), checkpoint.size, checkpoint.root)
    demand(stated == (ledger, size, root), None, "not ours")


def proved_roots(header: dict[str, Any], checkpoint: Checkpoint) -> dict[int, bytes]:
    """Return the root by size of the older checkpoint that the header's `consistency` proves.

    "Its size is at most `size`, and its proof leads from its root to `root`, also if there is no
    older checkpoint to compare."
    """
    consistency = header.get("consistency")
    if consistency is None:
        return {}
    size, root, proof = consistency["size"], b64decode(consistency["root"]), consistency["proof"]
    left = hashes(proof)
    holds = 0 < size <= checkpoint.size and (
        roots_by_consistency(size, checkpoint.size, root, left) == (root, checkpoint.root)
    )
    demand(holds and not left, None, "the proof of consistency does not hold")
    return {size: root}


def verify_receipt(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a receipt, `raw` being the beginning of the file.

    "1. The note is signed by a known key and is of that ledger."
    "2. Positions rise; each event's proof leads from its leaf to the note's root."
    "3. All events have one `originator_id` and the versions 1, 2, 3, …, and their append ids rise."
    "4. The first is a `ClaimCreated` whose `data.claim_id` is the claim."
    """
    receipt = read_line(read_rest(raw, file), None, RECEIPT)
    checkpoint = open_checkpoint(receipt["checkpoint"], keys)
    ledger, size, root = receipt["ledger"], checkpoint.size, checkpoint.root
    check_same_log(checkpoint, ledger, size, root)
    events, written = Events(1, (ledger, size, root), keys), receipt["events"]
    for event in written:
        events.take(event, None)
    stream, drawn = written[0]["originator_id"], 0
    for version, event in enumerate(written, 1):
        is_next = (event["originator_id"], event["originator_version"]) == (stream, version)
        demand(is_next and event["append_id"] > drawn, event["position"], "no whole stream")
        drawn = event["append_id"]
    for event in written:
        with reading(event["position"]):
            check_claim_event(event)
    with reading(written[0]["position"]):
        data = read_state(written[0])["data"]
        names = ("claim_id", "entity_id", "partner_id")
        begins = written[0]["topic"] == "ClaimCreated" and data["claim_id"] == receipt["claim_id"]
        is_claim = begins and all(is_of(data[name], str) for name in names)
        demand(is_claim, written[0]["position"], "no claim")
    claim = {name: data[name] for name in names}
    part = claim | demands.met_by(receipt["checkpoint"])
    # A verifier refuses "an OLD of another size or origin, which cannot be compared".
    return verdict_of(checkpoint, {"from": 1} | part, events, older, {size: root})


def check_claim_event(event: dict[str, Any]) -> None:
    """Check what a receipt's events have; raises what cannot be read otherwise.

    "5. Each event has `meta.at`, a time as `2026-03-01T10:15:30.123Z` with none to six digits
    of a second's parts, and `meta.actor`, a text".
    """
    state = read_state(event)
    at, actor = state["meta"]["at"], state["meta"]["actor"]
    is_time = re.fullmatch(AT, at) and datetime.fromisoformat(at)
    demand(is_time and is_of(actor, str) and "data" in state, event["position"], "no event")


def verdict_of(
    checkpoint: Checkpoint,
    part: dict[str, Any],
    events: Events,
    older: Checkpoint | None,
    roots: dict[int, bytes],
) -> dict[str, Any]:
    """Return the verdict on a file that holds; `part` says of which part of the log it is.

    `roots` are those of the log at earlier sizes, as far as they are known.
    """
    if older is not None:
        check_older(checkpoint, older, events.lineages, roots)
    verdict: dict[str, Any] = {"ok": True, "origin": checkpoint.origin, "size": checkpoint.size}
    verdict |= {"root": b64encode(checkpoint.root).decode(), **part, "events": events.count}
    lost = [
        lineage.followed_size
        for lineage in events.lineages.values()
        if lineage.follows and lineage.shared_size < lineage.followed_size
    ]
    return verdict | ({"set_aside": len(lost), "set_aside_size": max(lost)} if lost else {})


def check_older(
    checkpoint: Checkpoint,
    older: Checkpoint,
    lineages: dict[str, Lineage],
    roots: dict[int, bytes],
) -> None:
    """Check that the log continues an older checkpoint.

    "If its size is `size`, its root is `root`. Else, if there is no `entity` and its size is
    `from` − 1 or more, the tree had OLD's root when it had that size. Otherwise `consistency` has
    OLD's size and root."
    """
    shared = shared_with(checkpoint, older, lineages)
    demand(older.size <= shared, shared + 1, "the older checkpoint counts more events")
    is_known = older.size in roots
    demand(is_known, None, "the older checkpoint is too old: export from before it")
    holds = roots[older.size] == older.root
    demand(holds, 1, "the older checkpoint is of other events")


# ---------------------------------------------------- Proofs of consistency, absence and histories


def verify_consistency(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a proof that one log continues another.

    "1. Both notes are signed by known keys and are of that ledger."
    "2. `lineages` is there if, and only if, they are of two origins. Then it has the events of the
    stream of lineages from version 1 on, each proved by the newer note. The last lineage has the
    newer note's origin. The older note's origin is linked to it, and counts no more events than are
    shared."
    "3. The proof leads from the older root to the newer one."
    """
    line = read_line(read_rest(raw, file), None, CONSISTENCY)
    old, new = open_checkpoint(line["older"], keys), open_checkpoint(line["checkpoint"], keys)
    demand({ledger_of(old.origin), ledger_of(new.origin)} == {line["ledger"]}, None, "not ours")
    is_one = old.origin == new.origin
    demand(is_one == ("lineages" not in line), None, "lineages for two origins, and for two alone")
    events = Events(1, (line["ledger"], new.size, new.root), keys)
    for event in line.get("lineages", []):
        events.take(event, None)
        is_lineage = event["originator_id"] == LINEAGE_STREAMS[line["ledger"]]
        demand(is_lineage, event["position"], "no event of the stream of lineages")
        events.note_lineage(event)
    present = next(reversed(events.lineages), None)
    demand(is_one or present == new.origin, None, "not of the present lineage")
    shared = shared_with(new, old, events.lineages)
    demand(old.size <= shared, shared + 1, "the older checkpoint counts more events")
    proof = hashes(line["proof"])
    if old.size:
        roots = roots_by_consistency(old.size, new.size, old.root, proof)
        holds = roots == (old.root, new.root)
    else:
        holds = old.root == root_of([])
    demand(holds and not proof, None, "the proof of consistency does not hold")
    part = {"older_size": old.size, "older_origin": old.origin}
    proved = verdict_of(new, part, events, older, {old.size: old.root, new.size: new.root})
    return proved | demands.met_by(line["checkpoint"])


def verify_absence(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a proof that a claim did not exist.

    "1. Both notes are signed by known keys, and the three lines of the checkpoint are those of the
    note of streams."
    "2. `epoch` is 0 in `live`."
    "3. `before` is there if `index` is not 0, and `after` if it is smaller than the number of
    streams."
    "4. Their proofs of inclusion, at the indexes `index` − 1 and `index`, lead to the root of the
    index, and their positions do not exceed the checkpoint's size."
    "5. The claim's stream is after the one and before the other, byte by byte."
    """
    line = read_line(read_rest(raw, file), None, ABSENCE)
    checkpoint = open_checkpoint(line["checkpoint"], keys)
    check_same_log(checkpoint, line["ledger"], checkpoint.size, checkpoint.root)
    index = open_streams(line["streams"], keys)
    demand(index.checkpoint == checkpoint, None, "the notes are not of one checkpoint")
    demand(line["ledger"] == "test" or not line["epoch"], None, "only a sandbox begins anew")
    names = (line["partner_id"], line["entity_id"], line["partner_claim_id"])
    stream = stream_id("claim", line["ledger"], str(line["epoch"]), *names)
    at, before, after = line["index"], line.get("before"), line.get("after")
    is_place = at <= index.streams and (before is not None) == (at > 0)
    is_place = is_place and (after is not None) == (at < index.streams)
    demand(is_place, None, "no neighbours")
    demand(index.streams or index.root == root_of([]), None, "no index")
    for one, number in ((before, at - 1), (after, at)):
        if one is not None:
            check_stream(one, number, index)
    is_after = before is None or id_bytes(before["stream"]) < stream
    is_between = is_after and (after is None or stream < id_bytes(after["stream"]))
    demand(is_between, None, "the claim's stream is not between its neighbours")
    events = Events(1, (line["ledger"], checkpoint.size, checkpoint.root), keys)
    names_of_claim = ("epoch", "partner_id", "entity_id", "partner_claim_id")
    part = {name: line[name] for name in names_of_claim} | {"streams": index.streams}
    proved = verdict_of(checkpoint, part, events, older, {checkpoint.size: checkpoint.root})
    return proved | demands.met_by(line["checkpoint"])


STREAMS_HEADING: Final = "claim-ledger streams v1"
STREAMS_LINES: Final = 6


class Streams(NamedTuple):
    """The index of the streams that had begun by a checkpoint: how many, and its root."""

    checkpoint: Checkpoint
    streams: int
    root: bytes


def open_streams(note: str, keys: Keys) -> Streams:
    r"""Return what a signed note of streams states.

    "Its text is six lines, each ended by `\n`: `claim-ledger streams v1`, the three lines of the
    checkpoint, the number of streams, and the root of the index in base64."
    """
    lines = open_note(note, keys)
    demand(len(lines) == STREAMS_LINES and lines[0] == STREAMS_HEADING, None, "no note of streams")
    _, origin, size, root, count, index = lines
    is_note = re.fullmatch(NUMBER, size) and int(size) < 2**63 and origin
    is_note = is_note and re.fullmatch(NUMBER, count) and int(count) < 2**63
    is_note = is_note and re.fullmatch(HASH, root) and re.fullmatch(HASH, index)
    demand(is_note, None, "no note of streams")
    return Streams(Checkpoint(origin, int(size), b64decode(root)), int(count), b64decode(index))


def stream_id(*parts: str) -> bytes:
    """Return the 16 bytes of a stream's id.

    "The id is the first 128 bits of the SHA-256 over the parts, each preceded by its length in
    bytes (8 bytes, big-endian); of these, the four highest bits of byte 6 are then set to 1000, and
    the two highest of byte 8 to 10 (a UUID of version 8)."
    """
    raw = [part.encode() for part in parts]
    digest = bytearray(sha256(b"".join(len(one).to_bytes(8, "big") + one for one in raw)).digest())
    digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
    return bytes(digest[:16])


def id_bytes(text: str) -> bytes:
    """Return the 16 bytes of a UUID."""
    return bytes.fromhex(text.replace("-", ""))


def stream_leaf(stream: bytes, position: int) -> bytes:
    """Return the leaf of a stream.

    "A leaf is the SHA-256 of the byte 0x00, the 16 bytes of the id, and the position of the
    stream's first event as 8 bytes, big-endian."
    """
    return sha256(b"\x00" + stream + position.to_bytes(8, "big")).digest()


def check_stream(one: dict[str, Any], number: int, index: Streams) -> None:
    """Check that a stream is in the index at its place."""
    leaf, proof = stream_leaf(id_bytes(one["stream"]), one["position"]), hashes(one["proof"])
    holds = root_by_inclusion(number, index.streams, leaf, proof) == index.root and not proof
    holds = holds and one["position"] <= index.checkpoint.size
    demand(holds, None, "a stream's proof does not lead to the root of the index")


def check_streams(file: BinaryIO, index: Streams) -> None:
    """Compare an index of streams with a whole export that holds.

    "The leaves are sorted by the 16 bytes of the ids."
    """
    header, leaves, edge = json.loads(file.readline()), list[tuple[bytes, int]](), list[bytes]()
    is_whole = header.get("from") == 1 and "entity" not in header
    demand(is_whole, None, "only a whole export tells which streams there are")
    for raw in file:
        event = json.loads(raw) if b'"originator_version":1,' in raw else {}
        is_first = event.get("originator_version") == 1
        if is_first and event["position"] <= index.checkpoint.size:
            leaves.append((id_bytes(event["originator_id"]), event["position"]))
    for size, (stream, position) in enumerate(sorted(leaves)):
        grow(edge, size, stream_leaf(stream, position))
    holds = (len(leaves), root_of(edge)) == (index.streams, index.root)
    demand(holds, None, "the index of streams is not that of these events")


def verify_history(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a proof of the history of an id.

    "1. Each ledger is there once."
    "2. Its note is signed by a known key and is of that ledger."
    "3. Positions rise; each event's proof leads from its leaf to the note's root."
    "4. Each `state` contains the id as the file spells it, in quotation marks."
    """
    line = read_line(read_rest(raw, file), None, HISTORY)
    names = [part["ledger"] for part in line["ledgers"]]
    demand(len(set(names)) == len(names), None, "a ledger twice")
    opened = [open_checkpoint(part["checkpoint"], keys) for part in line["ledgers"]]
    for checkpoint, name in zip(opened, names, strict=True):
        check_same_log(checkpoint, name, checkpoint.size, checkpoint.root)
    proved: dict[str, dict[str, Any]] = {}
    for checkpoint, part in zip(opened, line["ledgers"], strict=True):
        events = Events(1, (part["ledger"], checkpoint.size, checkpoint.root), keys)
        for event in part["events"]:
            events.take(event, None)
            is_named = spell(line["subject"]) in event["state"]
            demand(is_named, event["position"], "the event does not name the id")
        proved[part["ledger"]] = verdict_of(checkpoint, {}, events, None, {})
        proved[part["ledger"]] |= demands.met_by(part["checkpoint"])
    if older is not None:
        ledger = ledger_of(older.origin)
        checkpoint = opened[names.index(ledger) if ledger in names else 0]
        check_older(checkpoint, older, {}, {checkpoint.size: checkpoint.root})
    first = {name: proved[names[0]][name] for name in ("origin", "size", "root")}
    return {"ok": True, **first, "subject": line["subject"], "ledgers": proved}


# -------------------------------------------------------- Proofs of one event in formats of others

TLOG_PROOF_BEGINS: Final = "c2sp.org/tlog-proof@v1\n"
COSE_BEGINS: Final = "\xd2"
ENTRY: Final = (
    rf"claim-ledger event v1\n({POSITIVE})\n({POSITIVE})\n({UUID})\n({POSITIVE})\n({TOPIC})\n"
    r"([0-9a-f]{64})\n"
)
CBOR_NULL: Final = 0xF6
CBOR_NEXT: Final = 24
"""From this on, a number follows in 1, 2, 4 or 8 bytes."""


def verify_tlog_proof(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a tlog-proof, whose entry is in the file beside it.

    "a first line `c2sp.org/tlog-proof@v1`, the line `index <position − 1>`, the event's `proof`
    with a hash a line, an empty line, and the checkpoint's note"
    """
    head, _, note = read_rest(raw, file).decode().partition("\n\n")
    _, index, *proof = head.split("\n")
    is_proof = re.fullmatch(f"index {NUMBER}", index)
    is_proof = is_proof and all(re.fullmatch(HASH, one) for one in proof)
    demand(is_proof, None, "no tlog-proof")
    checkpoint, at = open_checkpoint(note, keys), int(index.removeprefix("index "))
    root, entry = entry_root(file, at, checkpoint.size, hashes(proof))
    demand(root == checkpoint.root, at + 1, "the proof of inclusion does not hold")
    return entry_verdict(checkpoint, at, entry, older) | demands.met_by(note)


def verify_cose(
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands
) -> dict[str, Any]:
    """Return the verdict on a COSE receipt, whose entry is in the file beside it.

    "A COSE receipt is a COSE_Sign1 (tag 18) without payload. What is signed is the root that leaf
    and proof lead to." "The size is in neither signature nor root".
    """
    demand(demands == NO_DEMANDS, None, "nobody else has signed a COSE receipt")
    raw = read_rest(raw, file)
    protected, unprotected, _, signature = parts = cbor(raw.removeprefix(b"\xd2"))
    size, at, proof = cbor(unprotected[396][-1][0])
    header = cbor(protected)
    key_id, origin = header[4], header[15][1]
    is_receipt = header == {1: -8, 4: key_id, 15: {1: origin}, 395: 1} and is_of(origin, str)
    is_receipt = is_receipt and list(header) == [1, 4, 15, 395] and 0 <= at < size < 2**63
    is_receipt = is_receipt and is_of(proof, list) and all(is_of(one, bytes) for one in proof)
    is_receipt = is_receipt and all(len(one) == len(sha256().digest()) for one in proof)
    others = {396: {-1: [unprotected[396][-1][0]]}}
    demand(is_receipt and parts == [protected, others, None, signature], None, "no COSE receipt")
    name, _, number = key_id.decode().rpartition("+")
    key = keys.get((name, bytes.fromhex(number)), b"")
    is_known = key and key_id == f"{name}+{bytes.fromhex(number).hex()}".encode()
    demand(is_known, None, "signed by no key that was given")
    root, entry = entry_root(file, at, size, list(proof))
    written = raw[2 : raw.index(protected) + len(protected)]
    message = b"\x84\x6aSignature1" + written + b"\x40\x58\x20" + root
    demand(is_signature(key, signature, message), None, "the signature does not hold")
    return entry_verdict(Checkpoint(origin, size, root), at, entry, older)


def entry_root(file: BinaryIO, at: int, size: int, proof: list[bytes]) -> tuple[bytes, bytes]:
    """Return the root that the entry beside a proof leads to, and the entry."""
    entry = Path(file.name).with_suffix(".entry").read_bytes()
    demand(at < size, None, "the log has no such position")
    root = root_by_inclusion(at, size, sha256(b"\x00" + entry).digest(), proof)
    demand(not proof, at + 1, "the proof of inclusion does not hold")
    return root, entry


def entry_verdict(
    checkpoint: Checkpoint, at: int, entry: bytes, older: Checkpoint | None
) -> dict[str, Any]:
    """Return the verdict on an entry that is in the log.

    "the event's record, seven lines: the leaf is the SHA-256 of the byte 0x00 followed by it"
    """
    found = re.fullmatch(ENTRY, entry.decode())
    position, drawn, stream, version, topic, digest = found.groups() if found else ("0",) * 6
    is_record = int(position) == at + 1 and max(int(drawn), int(version)) < 2**63
    demand(is_record, at + 1, "no record of that position")
    demand(ledger_of(checkpoint.origin), None, "no origin of a ledger")
    part = {"position": at + 1, "stream": stream, "topic": topic, "state_sha256": digest}
    events = Events(1, (ledger_of(checkpoint.origin), checkpoint.size, checkpoint.root), keys={})
    return verdict_of(checkpoint, part, events, older, {checkpoint.size: checkpoint.root})


def cbor(raw: bytes) -> Any:  # noqa: ANN401 - whatever the bytes hold
    """Return the one value of CBOR (RFC 8949) that bytes hold in their shortest spelling."""
    value, rest = next_of_cbor(memoryview(raw))
    demand(not rest, None, "more than one value")
    return value


def next_of_cbor(raw: memoryview) -> tuple[Any, memoryview]:
    """Return the first value, and what is behind it: a view, since bytes would be copied."""
    kind, number, rest = raw[0] >> 5, raw[0] & 31, raw[1:]
    if raw[0] == CBOR_NULL:
        return None, rest
    if number >= CBOR_NEXT:
        width = {24: 1, 25: 2, 26: 4, 27: 8}[number]
        number, rest = int.from_bytes(rest[:width], "big"), rest[width:]
        least = CBOR_NEXT if width == 1 else 1 << width * 4
        demand(number >= least, None, "not the shortest spelling")
    match kind:
        case 0 | 1:
            return (-1 - number if kind else number), rest
        case 2 | 3:
            demand(number <= len(rest), None, "cut off")
            content = bytes(rest[:number])
            return (content if kind == 2 else content.decode()), rest[number:]  # noqa: PLR2004 - bytes
        case 4 | 5:
            values: list[Any] = []
            for _ in range(number * (kind - 3)):  # of a map keys and values
                value, rest = next_of_cbor(rest)
                values.append(value)
            if kind == 4:  # noqa: PLR2004 - a list
                return values, rest
            pairs = dict(zip(values[::2], values[1::2], strict=True))
            demand(len(pairs) == number, None, "a key twice")
            return pairs, rest
        case _:
            raise Fault(None, "no value of a receipt")


Verify = Callable[[bytes, BinaryIO, Keys, Checkpoint | None, Demands], dict[str, Any]]

KINDS: Final[dict[str, Verify]] = {
    RECEIPT_BEGINS: verify_receipt,
    CONSISTENCY_BEGINS: verify_consistency,
    ABSENCE_BEGINS: verify_absence,
    HISTORY_BEGINS: verify_history,
    TLOG_PROOF_BEGINS: verify_tlog_proof,
    COSE_BEGINS: verify_cose,
}
"""How files of other kinds than exports begin."""


def verify(
    file: BinaryIO, keys: Keys, older: Checkpoint | None, demands: Demands = NO_DEMANDS
) -> dict[str, Any]:
    """Return the verdict on a file of any kind; raises Fault if it does not hold."""
    with reading(None):
        raw = file.readline(LINE_BYTES_MAX)
        kinds = [kind for begins, kind in KINDS.items() if raw.startswith(begins.encode("latin-1"))]
        return (kinds or [verify_export])[0](raw, file, keys, older, demands)


def verdict_or_fault(
    file: BinaryIO,
    keys: Keys,
    older: Checkpoint | None,
    demands: Demands = NO_DEMANDS,
    streams: Streams | None = None,
) -> dict[str, Any]:
    """Return the verdict on a file; where it does not hold, the fault and its position."""
    try:
        verdict = verify(file, keys, older, demands)
        if streams is not None:
            file.seek(0)
            with reading(None):
                check_streams(file, streams)
    except Fault as fault:
        return {"ok": False, "position": fault.position, "fault": fault.sentence}
    return verdict


# ------------------------------------------------------------------------------- The command line


class Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Exit without the usage that argparse prints first."""
        self.exit(2, f"verify_export.py: {message}\n")


def main() -> int:
    """Verify the file that the arguments name; return the exit code."""
    parser = Parser(prog="verify_export.py", description="Verify an export or a receipt.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--public-key", action="append", required=True)
    parser.add_argument("--checkpoint", type=Path, help="an older signed one")
    parser.add_argument("--policy", type=Path, help="whose cosignatures are needed")
    parser.add_argument("--time-anchor", type=Path, help="a certificate of whom to trust on time")
    parser.add_argument("--streams", type=Path, help="a note of the index of a whole export")
    given = parser.parse_args()
    if given.checkpoint and given.streams:
        parser.error("--streams goes without --checkpoint: it has one of its own")
    keys: Keys = {}
    try:
        for text in given.public_key:
            parse_key(text, keys)
        note = given.checkpoint and given.checkpoint.read_bytes().decode(errors="replace")
        older = None if note is None else open_checkpoint(note, keys)
        policy = given.policy and Policy(given.policy.read_bytes())
        demands = Demands(policy, given.time_anchor)
        streams = given.streams and open_streams(given.streams.read_bytes().decode(), keys)
        with given.file.open("rb") as file:
            older = streams.checkpoint if streams else older
            verdict = verdict_or_fault(file, keys, older, demands, streams)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror or error}")
    except (Fault, *UNREADABLE):
        parser.error(
            "expected public keys as `audit keygen` prints, a checkpoint that they signed, and a "
            "policy of witnesses"
        )
    print(json.dumps(verdict))
    return 0 if verdict["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
