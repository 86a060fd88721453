"""The Merkle tree of RFC 6962 (section 2.1) over the log: heads, growth and proofs.

A leaf is the hash of a record with every column of an event, `leaf_record` (docs/ledger-format.md).
Sizes are numbers of leaves, and an index is a position minus one. A proof is a list of 32-byte
hashes, from the leaf towards the root, as in RFC 9162 (sections 2.1.3 and 2.1.4).
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, Self
from uuid import UUID

HASH_BYTES: Final = 32
_FOLDED_LEVEL: Final = 6
_FOLDED: Final = 1 << _FOLDED_LEVEL
"""So many leaves are hashed level by level where they make a subtree: twice as fast."""
EMPTY_ROOT: Final = sha256().digest()


def leaf_record(
    position: int,
    append_id: int,
    originator_id: UUID | str,
    originator_version: int,
    topic: str,
    state: bytes,
) -> bytes:
    """Return the canonical record of an event, with its state replaced by its hash.

    `originator_id` can be the text of the UUID, in its one spelling. The function `leaf_hash` in
    each ledger's schema builds the same record in SQL.
    """
    digest = sha256(state).hexdigest()
    return digested_record(position, append_id, originator_id, originator_version, topic, digest)


def digested_record(
    position: int,
    append_id: int,
    originator_id: UUID | str,
    originator_version: int,
    topic: str,
    digest: str,
) -> bytes:
    """Return the canonical record of an event whose state has a SHA-256, in hexadecimal digits."""
    return (
        f"claim-ledger event v1\n{position}\n{append_id}\n{originator_id}\n{originator_version}\n"
        f"{topic}\n{digest}\n"
    ).encode()


def leaf_hash(record: bytes) -> bytes:
    """Return the hash of a leaf."""
    return sha256(b"\x00" + record).digest()


def leaf_of(
    position: int,
    append_id: int,
    originator_id: UUID,
    originator_version: int,
    topic: str,
    state: bytes,
) -> bytes | None:
    """Return the hash of an event's columns; None where one is of another type."""
    try:
        digest = sha256(state).hexdigest()
        record = digested_record(
            position, append_id, originator_id, originator_version, topic, digest
        )
        return sha256(b"\x00" + record).digest()
    except (TypeError, ValueError, AttributeError):
        return None


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def split_hashes(joined: bytes) -> list[bytes]:
    """Split concatenated hashes into a list."""
    return [joined[at : at + HASH_BYTES] for at in range(0, len(joined), HASH_BYTES)]


class CompactRange:
    """The right edge of a growing tree: a hash for each complete subtree, largest first."""

    def __init__(self, size: int = 0, hashes: Sequence[bytes] = ()) -> None:
        """Start at `size` leaves, with a hash for each bit set in `size`; raises ValueError."""
        if size < 0 or size.bit_count() != len(hashes):
            raise ValueError(f"{len(hashes)} hashes do not make a tree of size {size}")
        self.size = size
        self.hashes = list(hashes)

    @classmethod
    def from_bytes(cls, size: int, joined: bytes) -> Self:
        """Restore a range from the bytes of `to_bytes`; raises ValueError."""
        if len(joined) % HASH_BYTES:
            raise ValueError(f"{len(joined)} bytes are not whole hashes")
        return cls(size, split_hashes(joined))

    def to_bytes(self) -> bytes:
        """Return the hashes, concatenated."""
        return b"".join(self.hashes)

    def append(self, leaf: bytes) -> None:
        """Append the hash of a leaf."""
        size, hashes = self.size, self.hashes
        while size & 1:
            leaf = sha256(b"\x01" + hashes.pop() + leaf).digest()
            size >>= 1
        hashes.append(leaf)
        self.size += 1

    def append_subtree(self, level: int, node: bytes) -> None:
        """Append a complete subtree of 2**level leaves; raises ValueError where it does not fit."""
        size = self.size >> level
        if size << level != self.size:
            raise ValueError(f"no subtree of level {level} begins after {self.size} leaves")
        hashes = self.hashes
        while size & 1:
            node = sha256(b"\x01" + hashes.pop() + node).digest()
            size >>= 1
        hashes.append(node)
        self.size += 1 << level

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append the hashes of leaves, in order."""
        for level, node in _subtrees(self.size, list(leaves)):
            self.append_subtree(level, node)

    def root(self) -> bytes:
        """Return the root hash."""
        if not self.hashes:
            return EMPTY_ROOT
        root = self.hashes[-1]
        for left in reversed(self.hashes[:-1]):
            root = node_hash(left, root)
        return root


class Subtrees:
    """The complete subtrees that cover leaves from any place in a tree on, from left to right."""

    def __init__(self, start: int) -> None:
        """Begin after `start` leaves."""
        self._size = start
        self.nodes: list[tuple[int, bytes]] = []

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Append the hashes of leaves, in order."""
        nodes = self.nodes
        for first_level, first in _subtrees(self._size, leaves):
            level, node = first_level, first
            place = self._size >> level
            self._size += 1 << level
            while place & 1 and nodes and nodes[-1][0] == level:
                node = sha256(b"\x01" + nodes.pop()[1] + node).digest()
                place, level = place >> 1, level + 1
            nodes.append((level, node))


def _subtrees(start: int, leaves: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield complete subtrees over leaves that follow `start` others: level and hash."""
    end = len(leaves)
    aligned = min(-start % _FOLDED, end)
    for leaf in leaves[:aligned]:
        yield 0, leaf
    for at in range(aligned, end - _FOLDED + 1, _FOLDED):
        row = leaves[at : at + _FOLDED]
        while len(row) > 1:
            row = [
                sha256(b"\x01" + left + right).digest()
                for left, right in zip(row[::2], row[1::2], strict=True)
            ]
        yield _FOLDED_LEVEL, row[0]
    for leaf in leaves[aligned + (end - aligned) // _FOLDED * _FOLDED :]:
        yield 0, leaf


def root_by_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """Return the root that an inclusion proof leads to; raises ValueError if it cannot be one.

    RFC 9162, 2.1.3.2. The caller compares the result with the checkpoint's root.
    """
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    node, last, root = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise ValueError("the proof is too long")
        if node & 1 or node == last:
            root = node_hash(sibling, root)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise ValueError("the proof is too short")
    return root


def is_consistent(
    old_size: int, old_root: bytes, size: int, root: bytes, proof: Sequence[bytes]
) -> bool:
    """Return whether a proof shows that the tree `root` begins with the tree `old_root`.

    RFC 9162, 2.1.4.2.
    """
    if not 0 <= old_size <= size:
        return False
    if old_size in {0, size}:
        expected = EMPTY_ROOT if old_size == 0 else root
        return not proof and old_root == expected
    node, last, path = old_size - 1, size - 1, list(proof)
    while node & 1:
        node, last = node >> 1, last >> 1
    if node == 0:
        path = [old_root, *path]
    if not path:
        return False
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and (old, new) == (old_root, root)
