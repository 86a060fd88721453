"""Proofs of consistency, absence and histories of a log in memory, as the insider writes them."""

from collections.abc import Callable
from hashlib import sha256
from uuid import UUID

from service.facts.claims import claim_stream
from service.facts.lineages import lineage_stream
from tests.evidence.altered_files import spelled
from tests.evidence.evidence_world import KEY
from tests.evidence.memory_log import CLAIM, ENTITY, HOME, Line, MemoryLog, text
from tests.ledger.merkle_tree import MerkleTree

OLDER = 3
"""A size up to which both lineages of the sample are one log."""


def linked(log: MemoryLog) -> bytes:
    """Return the proof that the log continues a checkpoint of its first lineage."""
    lines = log.lines(1, with_proofs=True)
    stream = str(lineage_stream("live"))
    lineages = [line for line in lines if line["originator_id"] == stream]
    return _consistency(log, f"{HOME}/lin_1", {"lineages": lineages})


def continued(log: MemoryLog) -> bytes:
    """Return the proof that the log continues a checkpoint of its present lineage."""
    log.lines(1)
    return _consistency(log, log.origin, {})


def _consistency(log: MemoryLog, origin: str, more: Line) -> bytes:
    size = min(OLDER, log.tree.size)
    older = f"{origin}\n{size}\n{text(log.tree.root(size))}\n"
    proof = [text(one) for one in log.tree.consistency_proof(size, log.tree.size)]
    made = {"format": "claim-ledger consistency v1", "ledger": "live", "older": signed(older)}
    return spelled(made | {"proof": proof} | more | {"checkpoint": log.note()} | log.header)


def signed(body: str) -> str:
    """Return a note of a text; the text, if no note can have it."""
    try:
        return KEY.sign(body)
    except ValueError:
        return body


def absence(
    log: MemoryLog, case: str = "case-9", *, ledger: str = "live", epoch: int = 0, beyond: int = 0
) -> bytes:
    """Return the proof that a claim is absent: whichever stream there is, the place is its own.

    Or one so many streams `beyond` that.
    """
    log.lines(1)
    names = ("ptn_1", ENTITY, case)
    first: dict[bytes, int] = {}
    for event in log.events:
        first.setdefault(_bytes(event["originator_id"]), event["position"])
    streams = sorted(first.items())
    leaves = [sha256(b"\0" + id_ + at.to_bytes(8, "big")).digest() for id_, at in streams]
    tree, stream = MerkleTree(leaves), claim_stream(ledger, epoch, *names).bytes
    index = sum(id_ < stream for id_, _ in streams) + beyond
    place = {
        name: {
            "stream": str(UUID(bytes=streams[at][0])),
            "position": streams[at][1],
            "proof": [text(one) for one in tree.inclusion_proof(at, tree.size)],
        }
        for name, at in (("before", index - 1), ("after", index))
        if 0 <= at < len(streams)
    }
    note = log.note()
    stated = note.partition("\n\n")[0]
    body = f"claim-ledger streams v1\n{stated}\n{len(streams)}\n{text(tree.root())}\n"
    made = {"format": "claim-ledger absence v1", "ledger": ledger, "epoch": epoch}
    made |= dict(zip(("partner_id", "entity_id", "partner_claim_id"), names, strict=True))
    notes = {"streams": signed(body), "checkpoint": note}
    return spelled(made | {"index": index} | place | notes | log.header)


def _bytes(originator_id: object) -> bytes:
    try:
        return UUID(str(originator_id)).bytes
    except ValueError:
        return bytes(16)


def history(log: MemoryLog) -> bytes:
    """Return the proof of the claim's history."""
    lines = log.lines(1, with_proofs=True)
    events = [line for line in lines if f'"{CLAIM}"' in line["state"]]
    part = {"ledger": "live", "events": events, "checkpoint": log.note()}
    made = {"format": "claim-ledger history v1", "subject": CLAIM, "ledgers": [part]}
    return spelled(made | log.header)


PROOFS: dict[str, Callable[[MemoryLog], bytes]] = {
    "linked.json": linked,
    "continued.json": continued,
    "absence.json": absence,
    "history.json": history,
}
