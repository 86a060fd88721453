"""What `claim-ledger audit check` says of receipts and other proofs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from service.cli.audit.demands import fields_of
from service.cli.verdict import Fields, Fine
from service.core.counted import counted
from service.evidence.checkpoint import Checkpoint
from service.evidence.demands import NO_DEMANDS, Demands
from service.evidence.export.format import (
    EvidenceFault,
    demanded,
    open_checkpoint,
    read_whole,
    to_text,
)
from service.evidence.export.linked import compare_kept
from service.evidence.export.receipt_verifier import check_receipt
from service.evidence.export.standard_checks import (
    COSE_BEGINS,
    FILE_BYTES_MAX,
    check_standard_proof,
)
from service.evidence.export.standard_proofs import ENTRY, TLOG_PROOF_BEGINS
from service.evidence.note import NoteKey
from service.evidence.proofs import absence, consistency, timeline

Keys = Sequence[NoteKey]
Given = tuple[Keys, Checkpoint | None, Demands]
"""The keys that the reader trusts, a checkpoint from elsewhere, and what others have to sign."""


def checked(
    path: Path, keys: Keys, kept: str | None, demands: Demands, entry: Path | None = None
) -> Fine:
    """Return the answer on a file, which is taken for a receipt unless it begins as another proof.

    `kept` is the note of a checkpoint that the reader has from elsewhere. `entry` is what a proof
    in a format of others is of; None: beside it, as `audit prove` names it. Raises EvidenceFault if
    the file does not hold, and OSError.
    """
    with path.open("rb") as file:
        raw = read_whole(file)
    other = None if kept is None else open_checkpoint(kept, keys, "the older checkpoint")
    given = (keys, other, demands)
    if raw.startswith((TLOG_PROOF_BEGINS, COSE_BEGINS)):
        entry = entry or path.with_suffix(f".{ENTRY}")
        if not entry.is_file():
            raise click.UsageError(f"{entry} is not there: --entry names what the proof is of")
        with entry.open("rb") as file:
            answer = _standard(raw, file.read(FILE_BYTES_MAX), given)
        return Fine(answer, f"{answer['proves']}, as it was signed")
    for name, check in _KINDS.items():
        if raw.startswith(f'{{"format":"{name}"'.encode()):
            answer = check(raw, given)
            return Fine(answer, f"{answer['proves']}, as it was signed")
    return _receipt(raw, given)


def _shown(checkpoint: Checkpoint) -> Fields:
    root = to_text(checkpoint.root)
    return {"origin": checkpoint.origin, "size": checkpoint.size, "root": root}


def _countersigned(demands: Demands, note: str, checkpoint: Checkpoint) -> Fields:
    return fields_of(demanded(demands, note, checkpoint.size))


def _receipt(raw: bytes, given: Given) -> Fine:
    keys, kept, demands = given
    proved = check_receipt(raw, keys)
    checkpoint = proved.checkpoint
    if kept is not None:
        # A receipt has no events by which it could be linked to another size or lineage.
        compare_kept(kept, checkpoint, (), {checkpoint.size: checkpoint.root})
    answer = {
        "ok": True,
        "claim_id": proved.claim_id,
        "entity_id": proved.entity_id,
        "partner_id": proved.partner_id,
        **_shown(checkpoint),
        **_countersigned(demands, proved.note, checkpoint),
        "events": proved.events,
    }
    events = counted(checkpoint.size, "event")
    return Fine(answer, f"{proved.claim_id} as it was signed in a log of {events}")


def _standard(raw: bytes, entry: bytes, given: Given) -> Fields:
    keys, kept, demands = given
    found = check_standard_proof(raw, entry, keys)
    checkpoint = found.checkpoint
    if kept is not None:
        compare_kept(kept, checkpoint, (), {checkpoint.size: checkpoint.root})
    if found.note is None and demands != NO_DEMANDS:
        sentence = "a COSE receipt has nothing that others have signed: check the receipt itself"
        raise EvidenceFault(None, sentence)
    answer = {"ok": True, "proves": "the event is in the log", "ledger": checkpoint.ledger}
    names = ("position", "stream", "version", "topic", "state_sha256")
    answer |= {name: getattr(found, name) for name in names} | _shown(checkpoint)
    return answer | ({} if found.note is None else _countersigned(demands, found.note, checkpoint))


def _consistency(raw: bytes, given: Given) -> Fields:
    keys, kept, demands = given
    line, older, newer, lineages = consistency.check_consistency(raw, keys)
    if kept is not None:
        compare_kept(kept, newer, lineages, {older.size: older.root, newer.size: newer.root})
    answer = {"ok": True, "proves": "one log continues the other", "older": _shown(older)}
    return {**answer, **_shown(newer), **_countersigned(demands, line.checkpoint, newer)}


def _absence(raw: bytes, given: Given) -> Fields:
    keys, kept, demands = given
    line, stream, streams, checkpoint = absence.check_absence(raw, keys)
    if kept is not None:
        compare_kept(kept, checkpoint, (), {checkpoint.size: checkpoint.root})
    names = ("partner_id", "entity_id", "partner_claim_id", "epoch")
    claim = {name: getattr(line, name) for name in names}
    answer = {"ok": True, "proves": "no such claim existed", "ledger": line.ledger, **claim}
    answer |= {"stream": str(stream), "streams": streams}
    return {**answer, **_shown(checkpoint), **_countersigned(demands, line.checkpoint, checkpoint)}


def _history(raw: bytes, given: Given) -> Fields:
    keys, kept, demands = given
    line, parts = timeline.check_history(raw, keys)
    if kept is not None:
        ours = next((one for one, _ in parts if one.ledger == kept.ledger), parts[0][0])
        compare_kept(kept, ours, (), {ours.size: ours.root})
    shown = [
        {
            "ledger": checkpoint.ledger,
            **_shown(checkpoint),
            **_countersigned(demands, part.checkpoint, checkpoint),
            "events": [{"position": one.position, "topic": one.topic} for one in part.events],
        }
        for checkpoint, part in parts
    ]
    proves = "these events are in the logs"
    return {"ok": True, "proves": proves, "subject": line.subject, "ledgers": shown}


_KINDS: Final[Mapping[str, Callable[[bytes, Given], Fields]]] = {
    consistency.FORMAT: _consistency,
    absence.FORMAT: _absence,
    timeline.FORMAT: _history,
}
