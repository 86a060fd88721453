"""The lines of evidence files (docs/ledger-format.md), and how they are read.

Each line has exactly one spelling. A line with the same meaning in other bytes is refused, so that
no two readers can take a file for different things.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, BinaryIO, Final, Literal, NoReturn, TypeVar

import msgspec

from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import Demands
from service.evidence.note import NoteInvalid, NoteKey
from service.evidence.verdict import Countersigned, EvidenceFault
from service.ledger.database import Row
from service.ledger.merkle import leaf_hash, leaf_record

LINE_BYTES_MAX: Final = 1 << 26
"""No event comes near it: a request's body has at most 1 MiB."""
STATE_BYTES_MAX: Final = 16 << 20
"""The constraint `events_bounded` keeps longer ones from a ledger's tables."""
STATE_DIGITS_MAX: Final = 1000
STATE_DEPTH_MAX: Final = 100
CHECKPOINT_BEGINS: Final = b'{"checkpoint":'
TOPIC: Final = "[A-Za-z0-9_]{1,200}"
"""The name of an event's class; 200 bytes are what that constraint lets it have."""

_POSITION_MAX: Final = 2**63 - 1
_TOPIC: Final = re.compile(TOPIC)
_NESTING: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]')
"""A string of JSON, whose brackets do not count, or a bracket."""

Position = Annotated[int, msgspec.Meta(ge=1, le=_POSITION_MAX)]
Size = Annotated[int, msgspec.Meta(ge=0, le=_POSITION_MAX)]
HashText = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\Z")]
"""32 bytes in base64; the last character has two bits to spare, which are zero."""
StreamText = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")]
TopicText = Annotated[str, msgspec.Meta(pattern=rf"\A{TOPIC}\Z")]
LedgerName = Annotated[str, msgspec.Meta(pattern=r"\A(accounts|live|test)\Z")]

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


class Line(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """A line with exactly one spelling: its members in order, absent ones left out."""


class EventLine(Line, frozen=True):
    """An event of the log; `state` is its bytes as text, `proof` its proof of inclusion."""

    position: Position
    append_id: Position
    originator_id: StreamText
    originator_version: Position
    topic: TopicText
    state: str
    leaf_hash: HashText
    proof: list[HashText] | None = None

    def record(self) -> bytes:
        """Return the event's record, whose hash is the leaf; raises EvidenceFault as `leaf`."""
        state = self.state.encode()
        if len(state) > STATE_BYTES_MAX:
            raise _not_held(self.position)
        return leaf_record(
            self.position,
            self.append_id,
            self.originator_id,
            self.originator_version,
            self.topic,
            state,
        )

    def leaf(self) -> bytes:
        """Return the hash of the columns; raises EvidenceFault if the line has another.

        So it does for a longer state than a ledger can hold.
        """
        found = leaf_hash(self.record())
        if to_text(found) != self.leaf_hash:
            raise _other_hash(self.position)
        return found


EntityText = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]


class Consistency(Line, frozen=True):
    """A proof that the log begins with the `size` events that made `root`."""

    size: Position
    root: HashText
    proof: list[HashText]


class Header(Line, frozen=True):
    """The first line of an export; `tree` is there if events are left out at the beginning."""

    format: Literal["claim-ledger export v1"]
    ledger: LedgerName
    first: Position = msgspec.field(name="from")
    size: Size
    root: HashText
    entity: EntityText | None = None
    tree: list[HashText] | None = None
    consistency: Consistency | None = None


class CheckpointLine(Line, frozen=True):
    """The last line of an export: the signed note."""

    checkpoint: str


class Receipt(Line, frozen=True):
    """The whole of a receipt: a claim's events, each with its proof, and one checkpoint."""

    format: Literal["claim-ledger receipt v1"]
    ledger: Annotated[str, msgspec.Meta(pattern=r"\A(live|test)\Z")]
    claim_id: str
    events: list[EventLine]
    checkpoint: str


def to_text(raw: bytes) -> str:
    """Return a hash as lines spell it."""
    return binascii.b2a_base64(raw, newline=False).decode()


@lru_cache(maxsize=8192)
def _shared_text(raw: bytes) -> str:
    return to_text(raw)


def to_texts(hashes: Sequence[bytes]) -> list[str]:
    """Return hashes as lines spell them: those of proofs, which neighbours share."""
    return [_shared_text(one) for one in hashes]


def to_hash(text: str) -> bytes:
    """Return a hash of a decoded line."""
    return base64.b64decode(text)


def to_hashes(texts: Sequence[str]) -> list[bytes]:
    """Return the hashes of a decoded line."""
    return [to_hash(one) for one in texts]


def encode(*lines: Line) -> bytes:
    """Return lines, their newlines included."""
    return _encoder.encode_lines(lines)


def decode(raw: bytes, kind: type[T], position: int | None = None) -> T:
    """Read a line in its one spelling; raises EvidenceFault, which names `position`."""
    if not raw.endswith(b"\n"):
        raise EvidenceFault(position, "the file ends within a line, or before it is whole")
    try:
        line = msgspec.json.decode(raw, type=kind)
    except (ValueError, RecursionError) as error:
        raise EvidenceFault(position, f"not a line of this format: {error}") from None
    if msgspec.json.encode(line) != raw[:-1]:
        raise EvidenceFault(position, "a line of this format, but not in its one spelling")
    return line


def decode_state(raw: str, kind: type[T]) -> T:
    """Read an event's state; raises ValueError or RecursionError.

    Readers of JSON differ on what has a member twice, half of a surrogate pair, no number or a very
    long one, and on what is nested deep. Such a state is refused whole, also where this reader
    would pass over it.
    """
    if raw.count("[") + raw.count("{") > STATE_DEPTH_MAX:
        _refuse_deep(raw)
    state = json.loads(
        raw, parse_constant=_refused, parse_int=_whole_number, object_pairs_hook=_members
    )
    json.dumps(state, ensure_ascii=False).encode()
    return msgspec.json.decode(raw, type=kind)


def _refuse_deep(raw: str) -> None:
    depth = 0
    for found in _NESTING.finditer(raw):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > STATE_DEPTH_MAX:
            _refused("a value nested too deep")


def _whole_number(digits: str) -> int:
    if len(digits.lstrip("-")) > STATE_DIGITS_MAX:
        _refused("a number of too many digits")
    return int(digits)


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        _refused("an object with a member twice")
    return found


def _refused(what: str) -> NoReturn:
    raise ValueError(f"{what} in a state")


def read_whole(file: BinaryIO) -> bytes:
    """Return the whole of a file that is read at once; raises EvidenceFault if it is too large."""
    raw = file.read(LINE_BYTES_MAX + 1)
    if len(raw) > LINE_BYTES_MAX:
        raise EvidenceFault(None, f"the file has more than {LINE_BYTES_MAX:,} bytes")
    return raw


def event_line(row: Row | None, position: int) -> EventLine:
    """Return the line of a row of log and event; raises EvidenceFault if they are unsound."""
    if row is None:
        raise EvidenceFault(position, "the log has no such position")
    if row["state"] is None:
        raise EvidenceFault(position, "the log's event is gone")
    stored, state = row["leaf_hash"], row["state"]
    columns = (row["append_id"], str(row["originator_id"]), row["originator_version"], row["topic"])
    if columns[0] < 1 or not _TOPIC.fullmatch(columns[3]) or len(state) > STATE_BYTES_MAX:
        raise _not_held(position)
    try:
        text = state.decode()
    except UnicodeDecodeError:
        raise EvidenceFault(position, "the event's state is not UTF-8") from None
    if leaf_hash(leaf_record(position, *columns, state)) != stored:
        raise _other_hash(position)
    return EventLine(
        position=position,
        append_id=columns[0],
        originator_id=columns[1],
        originator_version=columns[2],
        topic=columns[3],
        state=text,
        leaf_hash=to_text(stored),
    )


def _other_hash(position: int) -> EvidenceFault:
    return EvidenceFault(position, "the event does not have the hash it is listed by")


def _not_held(position: int) -> EvidenceFault:
    return EvidenceFault(position, "the event has a column that no ledger's events have")


def demanded(demands: Demands, note: str, size: int) -> Countersigned:
    """Return the required signatures of a file's checkpoint; raises EvidenceFault if too few."""
    try:
        return demands.met_by(note, size)
    except NoteInvalid as error:
        raise EvidenceFault(None, f"the checkpoint: {error}") from None


def open_checkpoint(note: str, keys: Sequence[NoteKey], what: str) -> Checkpoint:
    """Return a signed checkpoint; raises EvidenceFault, which calls it `what`."""
    try:
        return Checkpoint.open(note, keys)
    except NoteInvalid as error:
        raise EvidenceFault(None, f"{what}: {error}") from None
