"""A log in memory, and evidence files of it, by whoever has the signing key: an insider, too."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from service.core.ids import stream_id
from service.evidence.authorisation import authorised
from service.evidence.checkpoint import Checkpoint
from service.evidence.note import NoteKey
from service.facts.lineages import lineage_stream
from tests.evidence.altered_files import hash_of, spelled
from tests.evidence.evidence_world import KEY, OTHER
from tests.ledger.merkle_tree import MerkleTree

HOME = "example.com/claim-ledger/live"
CLAIM, ENTITY = "clm_1", "ent_1"
EMPTY = "\0"
"""Stands for a member that is absent."""

Line = dict[str, Any]


def text(raw: bytes) -> str:
    """Return base64."""
    return base64.b64encode(raw).decode()


@dataclass
class MemoryLog:
    """What is written into files; whatever of it is altered is hashed and signed as it is then."""

    events: list[Line] = field(default_factory=list[Line])
    origin: str = f"{HOME}/lin_2"
    extension: str = ""
    key: NoteKey = KEY
    checkpoint: dict[str, Any] = field(default_factory=dict[str, Any])
    header: dict[str, Any] = field(default_factory=dict[str, Any])
    older_size: int = 4

    def add(self, stream: str, topic: str, data: Line) -> None:
        """Append an event."""
        version = 1 + sum(one["originator_id"] == stream for one in self.events)
        state = {"data": data, "meta": {"at": "2026-03-01T10:15:30.123Z", "actor": "system:dev"}}
        self.events.append(
            {
                "position": len(self.events) + 1,
                "append_id": 2 * len(self.events) + 1,
                "originator_id": stream,
                "originator_version": version,
                "topic": topic,
                "state": state,
            }
        )

    def begin(self, lineage: str, follows: str | None = None, size: int = 0, shared: int = 0):
        """Append the beginning of a lineage."""
        previous = Checkpoint(f"{HOME}/{follows}", size, bytes(32)).sign(KEY) if follows else None
        begun = {"origin": f"{HOME}/{lineage}", "reason": "lost", "authorisation": EMPTY}
        begun |= {"previous": previous, "shared_size": shared} if follows else {}
        self.add(str(lineage_stream("live")), "LineageBegun", begun)

    def lines(self, first: int, *, with_proofs: bool = False) -> list[Line]:
        """Return the lines of events, hashed as they are, and the tree's proofs where wanted."""
        lines = [{**one, "state": self._state(one)} for one in self.events]
        leaves = [hash_of(line) for line in lines]
        tree = MerkleTree(leaves)
        for index, line in enumerate(lines):
            line["leaf_hash"] = text(leaves[index])
            if with_proofs:
                proof = tree.inclusion_proof(index, tree.size)
                line["proof"] = [text(one) for one in proof]
        self.tree = tree
        return lines[first - 1 :]

    def note(self, size: int | None = None) -> str:
        """Return the signed checkpoint of the first events."""
        size = self.tree.size if size is None else size
        stated = {"origin": self.origin, "size": size, "root": text(self.tree.root(size))}
        stated |= self.checkpoint if size == self.tree.size else {}
        body = f"{stated['origin']}\n{stated['size']}\n{stated['root']}\n{self.extension}"
        try:
            return self.key.sign(body)
        except ValueError:  # what no note can have
            return body

    def _state(self, event: Line) -> str:
        state = event["state"]
        if isinstance(state, str):
            return state
        data = state.get("data")
        if event["topic"] == "LineageBegun" and isinstance(data, dict):
            data = {name: value for name, value in data.items() if value != EMPTY}
            data = {**data, "authorisation": data.get("authorisation", _authorised(data))}
        written = json.dumps({**state, "data": data}, ensure_ascii=False)
        is_text = written.isascii() or "\ud800" not in written
        return written if is_text else json.dumps({**state, "data": data})


def _authorised(data: Line) -> str:
    """Return what the operator's key states of a lineage, whatever that is."""
    try:
        return authorised(
            KEY, data["origin"], "", data.get("previous"), data.get("shared_size")
        ).authorisation
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""


def sample() -> MemoryLog:
    """Return a log of two lineages, a claim, its entity, and others."""
    log = MemoryLog()
    claim, entity, other = (str(stream_id("memory", one)) for one in "abc")
    log.begin("lin_1")
    log.add(entity, "EntityRegistered", {"entity_id": ENTITY})
    created = {"claim_id": CLAIM, "entity_id": ENTITY, "partner_id": "ptn_1"}
    log.add(claim, "ClaimCreated", created)
    log.add(other, "EntityRegistered", {"entity_id": "ent_2"})
    log.begin("lin_2", "lin_1", 6, 3)
    log.add(claim, "ClaimStageChanged", {"claim_id": CLAIM, "stage": "settled"})
    log.add(other, "EntityRenamed", {"entity_id": "ent_2"})
    return log


def whole(log: MemoryLog) -> bytes:
    """Return an export of all."""
    return _export(log, log.lines(1), {"from": 1})


def later(log: MemoryLog) -> bytes:
    """Return an export from position 3 on."""
    lines, before = log.lines(3), 2
    leaves = [base64.b64decode(one["leaf_hash"]) for one in log.lines(1)]
    tree = MerkleTree(leaves[:before]).root()  # one hash: two leaves are one complete subtree
    return _export(log, lines, {"from": 3}, {"tree": [text(tree)]})


def of_entity(log: MemoryLog) -> bytes:
    """Return an entity's export, which proves that the log continues an older checkpoint."""
    lines, size = log.lines(1, with_proofs=True), log.older_size
    kept = [line for line in lines if '"ent_2"' not in line["state"]]
    more: Line = {"entity": ENTITY}
    if 0 < size <= log.tree.size:
        proof = [text(one) for one in log.tree.consistency_proof(size, log.tree.size)]
        more["consistency"] = {"size": size, "root": text(log.tree.root(size)), "proof": proof}
    return _export(log, kept, {"from": 1}, more)


def receipt(log: MemoryLog) -> bytes:
    """Return the claim's receipt."""
    lines = log.lines(1, with_proofs=True)
    events = [line for line in lines if f'"{CLAIM}"' in line["state"]]
    made = {"format": "claim-ledger receipt v1", "ledger": "live", "claim_id": CLAIM}
    return spelled(made | {"events": events, "checkpoint": log.note()} | log.header)


def _export(log: MemoryLog, lines: list[Line], first: Line, more: Line | None = None) -> bytes:
    size, root = log.tree.size, text(log.tree.root())
    header = {"format": "claim-ledger export v1", "ledger": "live", **first, "size": size}
    header |= {"root": root, **(more or {})} | log.header
    return b"".join(map(spelled, [header, *lines, {"checkpoint": log.note()}]))


FILES: dict[str, Callable[[MemoryLog], bytes]] = {
    "whole.ndjson": whole,
    "later.ndjson": later,
    "entity.ndjson": of_entity,
    "receipt.json": receipt,
}
VALUES = [
    *(None, True, 0, 1, -1, 2, 3, 99, 2**63, 1.0, "", "1", "live", "x", [], {}),
    *(EMPTY, "\ud800", "a\nb", f"{HOME}/lin_1", f"{HOME}/lin_2", f"{HOME}/lin_3", "live/lin_2"),
    *("example.com/claim-ledger/test/lin_1", "2026-13-01T00:00:00Z", "2026-03-01T10:15:30+00:00"),
    Checkpoint("example.com/claim-ledger/test/lin_1", 3, bytes(32)).sign(KEY),
    Checkpoint(f"{HOME}/lin_1", 3, bytes(32)).sign(OTHER),
    Checkpoint(f"{HOME}/lin_3", 3, bytes(32)).sign(KEY),
    Checkpoint(f"{HOME}/lin_1", 3, bytes(32)).sign(KEY),
    "claim-ledger lineage v1\n",
]
"""What a member is replaced by."""
