"""The index of streams, recomputed from a whole export."""

from hashlib import sha256
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

import msgspec

from service.evidence.export.format import EvidenceFault, Header
from service.evidence.streams_note import StreamsNote
from service.ledger.merkle import CompactRange


class _First(msgspec.Struct):
    position: int
    originator_id: str


def compare_index(path: Path, stated: StreamsNote) -> None:
    """Compare a note of streams with a verified export; raises EvidenceFault where they differ.

    It keeps 24 bytes for each stream, and sorts them.
    """
    with path.open("rb") as file:
        leaves = _leaves(file, stated.checkpoint.size)
    tree = CompactRange()
    tree.extend(sha256(b"\x00" + leaf).digest() for leaf in sorted(leaves))
    if (tree.size, tree.root()) != (stated.streams, stated.root):
        raise EvidenceFault(
            None,
            f"the index of streams is not that of these events: they have {tree.size} streams, the "
            f"note says {stated.streams}",
        )


def _leaves(file: BinaryIO, size: int) -> list[bytes]:
    header = msgspec.json.decode(file.readline(), type=Header)
    if header.first != 1 or header.entity is not None:
        raise EvidenceFault(None, "only a whole export tells which streams there are")
    leaves: list[bytes] = []
    for raw in file:
        if b'"originator_version":1,' not in raw:
            continue
        first = msgspec.json.decode(raw, type=_First)
        if first.position > size:
            break
        leaves.append(UUID(first.originator_id).bytes + first.position.to_bytes(8, "big"))
    return leaves
