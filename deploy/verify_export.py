"""Verify an export or a receipt of claim-ledger with Python 3.11 alone.

    python verify_export.py FILE --public-key KEY [--public-key KEY …] [--checkpoint OLD]

FILE is what `claim-ledger audit export` or `audit prove` wrote. KEY is a public key that you got
from the operator, not from FILE. OLD is an older checkpoint that you kept: FILE has to continue it.
It prints one JSON object, the verdict, and exits with 0 if FILE holds, with 1 if it does not, and
with 2 if it was called wrongly.

This file shares no code with the service, needs no network, and imports the standard library only.
It follows docs/ledger-format.md; what stands in quotation marks below is quoted from there. Read it
from the end: `main`, then `verify`, then what they call.
"""

import argparse
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from hashlib import sha256, sha512
from pathlib import Path
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
STRING: Final = r'"(?:[^"\\]|\\.)*+"'
BASE64: Final = "[A-Za-z0-9+/]"
HASH: Final = BASE64 + "{42}[AEIMQUYcgkosw048]="
UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HASHES: Final = rf'\[(?:"{HASH}"(?:,"{HASH}")*+)?\]'
ROOT: Final = rf'"root":"{HASH}"'
HEADER: Final = (
    r'\{"format":"claim-ledger export v1","ledger":"(?:accounts|live|test)",'
    rf'"from":{POSITIVE},"size":{NUMBER},{ROOT}'
    rf'(?:,"entity":{STRING})?(?:,"tree":{HASHES})?'
    rf'(?:,"consistency":\{{"size":{POSITIVE},{ROOT},"proof":{HASHES}\}})?\}}'
)
EVENT: Final = (
    rf'\{{"position":{POSITIVE},"append_id":{NUMBER},"originator_id":"{UUID}",'
    rf'"originator_version":{POSITIVE},"topic":{STRING},"state":{STRING},"leaf_hash":"{HASH}"'
    rf'(?:,"proof":{HASHES})?\}}'
)
CHECKPOINT: Final = rf'\{{"checkpoint":{STRING}\}}'
AT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z"
RECEIPT_BEGINS: Final = '{"format":"claim-ledger receipt v1"'
RECEIPT: Final = (
    rf'\{RECEIPT_BEGINS},"ledger":"(?:live|test)","claim_id":{STRING},'
    rf'"events":\[{EVENT}(?:,{EVENT})*\],"checkpoint":{STRING}\}}'
)

spell: Final[Callable[[object], str]] = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":")
).encode


def read_line(raw: bytes, position: int | None, pattern: str) -> dict[str, Any]:
    """Read a line of the file; `position` is where the fault is if it cannot be read.

    "A verifier refuses any other spelling, so that no two readers can take a file for different
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


def read_state(event: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON that an event's state is; raises ValueError if it is none.

    "A state that is read has no `NaN` or `Infinity`, and no escape of half a surrogate pair."
    """
    state = json.loads(event["state"], parse_constant=refuse)
    spell(state).encode()
    return state


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


class Checkpoint(NamedTuple):
    """A signed checkpoint: the log `origin` had `size` events under this root."""

    origin: str
    size: int
    root: bytes


def parse_key(text: str, keys: Keys) -> None:
    r"""Add a public key; raises ValueError or Fault for what is none.

    "A public key is text: `<name>+<id, 8 hexadecimal digits>+<base64 of the byte 0x01 and the 32
    bytes of the key>`. Its id is the first four bytes of the SHA-256 of the name, `\n`, the byte
    0x01 and the 32 bytes."
    """
    name, number, encoded = text.split("+", 2)
    raw = b64decode(encoded, validate=True)
    demand(sha256(f"{name}\n".encode() + raw).hexdigest()[:8] == number, None, "no key")
    keys[name, bytes.fromhex(number)] = raw[1:]


def open_note(note: str, keys: Keys, position: int | None = None) -> list[str]:
    r"""Return the lines of a signed note's text.

    "The signature's base64 holds the key's id (4 bytes) and the 64 bytes of an Ed25519 signature
    (RFC 8032) over the three lines with their `\n`. Signatures by unknown keys are ignored. A note
    is refused if no known key signed it, or if a signature by a known key does not hold." And "A
    note has at most 1,000,000 characters, of which none is a control character but `\n`, and at
    most 100 signatures, known or not; each has at least one byte after the id."
    """
    is_note = len(note) <= NOTE_MAX and not re.search(CONTROL, note)
    text, _, signatures = note.rpartition("\n\n")
    lines = signatures.removesuffix("\n").split("\n")
    demand(is_note and len(lines) <= SIGNATURES_MAX, position, "not a signed note")
    is_signed = False
    for line in lines:
        found = re.fullmatch(SIGNATURE, line)
        raw = b64decode(found[2]) if found else b""
        if found is None or b64encode(raw).decode() != found[2] or len(raw) <= KEY_ID_BYTES:
            raise Fault(position, "not a signed note")
        key = keys.get((found[1], raw[:4]))
        if key is not None:
            is_signed = is_signature(key, raw[4:], f"{text}\n".encode())
            demand(is_signed, position, "the signature does not hold")
    demand(is_signed and signatures.endswith("\n"), position, "signed by no key that was given")
    return text.split("\n")


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
    authorisation states anything else." And "an origin begins once; it comes after the events that
    it shares, which are no more than `previous` has; `previous` is of the present lineage or of one
    that the log does not know".
    """
    data, position = read_state(event)["data"], event["position"]
    origin, previous, shared = data["origin"], data.get("previous"), data.get("shared_size")
    # "The first three are there and are text; the other two are absent or `null` together."
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
    demand(is_authorised and origin not in known, position, "the lineage is not authorised")
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
    of the byte 0x00 followed by the record."
    """
    names = ("position", "append_id", "originator_id", "originator_version", "topic")
    columns = [str(event[name]) for name in names]
    state = sha256(event["state"].encode()).hexdigest()
    record = "\n".join(["claim-ledger event v1", *columns, state, ""])
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
        that stream have the versions that follow each other, from 1 on where `from` is 1".
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
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None
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
    roots = proved_roots(header, checkpoint) | roots
    events.check_origin(checkpoint.origin)
    part = {name: header[name] for name in ("from", "entity") if header.get(name)}
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
    """Return the root by size of the older checkpoint that the header's `consistency` proves."""
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
    raw: bytes, file: BinaryIO, keys: Keys, older: Checkpoint | None
) -> dict[str, Any]:
    """Return the verdict on a receipt, `raw` being the beginning of the file.

    "The note is signed by a known key and is of that ledger; positions rise; each event's proof
    leads from its leaf to the note's root; all events have one `originator_id` and the versions 1,
    2, 3, …; the first is a `ClaimCreated` whose `data.claim_id` is the claim."
    """
    receipt = read_line(raw + file.read(LINE_BYTES_MAX), None, RECEIPT)
    checkpoint = open_checkpoint(receipt["checkpoint"], keys)
    ledger, size, root = receipt["ledger"], checkpoint.size, checkpoint.root
    check_same_log(checkpoint, ledger, size, root)
    events, written = Events(1, (ledger, size, root), keys), receipt["events"]
    for event in written:
        events.take(event, None)
    stream = written[0]["originator_id"]
    for version, event in enumerate(written, 1):
        is_next = (event["originator_id"], event["originator_version"]) == (stream, version)
        demand(is_next, event["position"], "no whole stream")
    for event in written:
        with reading(event["position"]):
            check_claim_event(event)
    with reading(written[0]["position"]):
        data = read_state(written[0])["data"]
        names = ("claim_id", "entity_id", "partner_id")
        begins = written[0]["topic"] == "ClaimCreated" and data["claim_id"] == receipt["claim_id"]
        is_claim = begins and all(is_of(data[name], str) for name in names)
        demand(is_claim, written[0]["position"], "no claim")
    # "An OLD of another size or origin cannot be compared with a receipt".
    return verdict_of(checkpoint, {"from": 1}, events, older, {size: root})


def check_claim_event(event: dict[str, Any]) -> None:
    """Check what a receipt's events have; raises what cannot be read otherwise.

    "Of each event it reads `meta.at`, a time as `2026-03-01T10:15:30.123Z` with none to six digits
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

    "If its size is `from` − 1 or more, the tree had OLD's root when it had that size. Otherwise
    `consistency` has OLD's size and root, and the proof holds."
    """
    shared = shared_with(checkpoint, older, lineages)
    demand(older.size <= shared, shared + 1, "the older checkpoint counts more events")
    is_known = older.size in roots
    demand(is_known, None, "the older checkpoint is too old: export from before it")
    holds = roots[older.size] == older.root
    demand(holds, 1, "the older checkpoint is of other events")


def verify(file: BinaryIO, keys: Keys, older: Checkpoint | None) -> dict[str, Any]:
    """Return the verdict on a file, an export or a receipt; raises Fault if it does not hold."""
    with reading(None):
        raw = file.readline(LINE_BYTES_MAX)
        is_receipt = raw.startswith(RECEIPT_BEGINS.encode())
        return (verify_receipt if is_receipt else verify_export)(raw, file, keys, older)


def verdict_or_fault(file: BinaryIO, keys: Keys, older: Checkpoint | None) -> dict[str, Any]:
    """Return the verdict on a file; where it does not hold, the fault and its position."""
    try:
        return verify(file, keys, older)
    except Fault as fault:
        return {"ok": False, "position": fault.position, "fault": fault.sentence}


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
    given = parser.parse_args()
    keys: Keys = {}
    try:
        for text in given.public_key:
            parse_key(text, keys)
        note = given.checkpoint and given.checkpoint.read_bytes().decode(errors="replace")
        older = None if note is None else open_checkpoint(note, keys)
        with given.file.open("rb") as file:
            verdict = verdict_or_fault(file, keys, older)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror or error}")
    except (Fault, *UNREADABLE):
        parser.error("expected public keys as `audit keygen` prints, a checkpoint that they signed")
    print(json.dumps(verdict))
    return 0 if verdict["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
