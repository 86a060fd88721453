"""Checking a receipt's proofs in standard formats, each with the entry that it proves."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from service.evidence.checkpoint import SIZE_MAX, Checkpoint, ledger_of
from service.evidence.export.cose import CoseReceipt
from service.evidence.export.format import (
    TOPIC,
    EvidenceFault,
    open_checkpoint,
    to_hash,
    to_text,
)
from service.evidence.export.standard_proofs import TLOG_PROOF_BEGINS
from service.evidence.note import NOTE_MAX, NoteKey
from service.ledger.merkle import HASH_BYTES, leaf_hash, root_by_inclusion

FILE_BYTES_MAX: Final = 4 * NOTE_MAX
COSE_BEGINS: Final = b"\xd2"
"""Tag 18 in CBOR: neither JSON nor text begins so."""

_NUMBER: Final = "[1-9][0-9]{0,18}"
_ENTRY: Final = re.compile(
    rf"claim-ledger event v1\n({_NUMBER})\n({_NUMBER})\n"
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\n"
    rf"({_NUMBER})\n({TOPIC})\n([0-9a-f]{{64}})\n",
    re.ASCII,
)
_INDEX: Final = re.compile(r"index (0|[1-9][0-9]{0,18})", re.ASCII)


class ProvedEntry(NamedTuple):
    """An event that is in the log at a position, without its state; `note` is the checkpoint's.

    A COSE receipt has no note. It signs only the root, for an origin.
    """

    position: int
    stream: str
    version: int
    topic: str
    state_sha256: str
    checkpoint: Checkpoint
    note: str | None


def check_standard_proof(raw: bytes, entry: bytes, keys: Sequence[NoteKey]) -> ProvedEntry:
    """Return what a C2SP tlog-proof or a COSE receipt proves of an entry; raises EvidenceFault."""
    try:
        return (_cose if raw.startswith(COSE_BEGINS) else _tlog_proof)(raw, entry, keys)
    except ValueError as error:
        raise EvidenceFault(None, str(error)) from None


def _tlog_proof(raw: bytes, entry: bytes, keys: Sequence[NoteKey]) -> ProvedEntry:
    head, _, note = _text(raw).partition("\n\n")
    begins, *lines = head.split("\n")
    index = _INDEX.fullmatch(lines[0] if lines else "")
    proof = [to_hash(line) for line in lines[1:]]
    is_proof = all(len(one) == HASH_BYTES for one in proof)
    is_proof = is_proof and [to_text(one) for one in proof] == lines[1:]
    if f"{begins}\n".encode() != TLOG_PROOF_BEGINS or index is None or not is_proof:
        raise ValueError("not a tlog-proof as `audit prove` writes it")
    checkpoint = open_checkpoint(note, keys, "the checkpoint")
    at = int(index[1])
    root = root_by_inclusion(leaf_hash(entry), at, checkpoint.size, proof)
    if root != checkpoint.root:
        raise EvidenceFault(at + 1, "the entry is not the event that the log has there")
    return _proved(entry, at, checkpoint, note)


def _cose(raw: bytes, entry: bytes, keys: Sequence[NoteKey]) -> ProvedEntry:
    receipt = CoseReceipt.decode(raw)
    if receipt.size > SIZE_MAX or {len(one) for one in receipt.proof} - {HASH_BYTES}:
        raise ValueError("not a COSE receipt as `audit prove` writes it")
    root = root_by_inclusion(leaf_hash(entry), receipt.at, receipt.size, receipt.proof)
    origin = receipt.origin(keys, root)
    return _proved(entry, receipt.at, Checkpoint(origin, receipt.size, root), None)


def _proved(entry: bytes, index: int, checkpoint: Checkpoint, note: str | None) -> ProvedEntry:
    if not ledger_of(checkpoint.origin):
        raise ValueError(f"{checkpoint.origin} is no origin of a ledger")
    found = _ENTRY.fullmatch(_text(entry))
    is_record = found is not None and int(found[1]) == index + 1
    if found is None or not is_record or max(int(found[2]), int(found[4])) > SIZE_MAX:
        raise EvidenceFault(index + 1, "the entry is not the record of the event of that position")
    position, _, stream, version, topic, digest = found.groups()
    return ProvedEntry(int(position), stream, int(version), topic, digest, checkpoint, note)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError("not text in UTF-8") from None
