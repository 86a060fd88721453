"""Proofs cut from a tree as its leaves stream by: memory for the proofs, not for the tree."""

from collections.abc import Iterable, Iterator

from service.ledger.merkle import CompactRange, node_hash

Range = tuple[int, int]
"""The leaves of a subtree: from the first to before the second."""


class ProofCutter(CompactRange):
    """A tree that grows to a size known beforehand, and keeps what certain proofs need."""

    def __init__(self, size: int, indexes: Iterable[int] = (), old_size: int = 0) -> None:
        """Take the size to come, the leaves to prove, and that of an older tree to prove."""
        super().__init__()
        self._goal = size
        self._old_size = old_size
        self._kept: list[dict[int, bytes]] = [{} for _ in range(size.bit_length() + 1)]
        self._wanted: list[set[int]] = [set() for _ in self._kept]
        for index in indexes:
            self._want(inclusion_ranges(index, size))
        self._want(consistency_ranges(old_size, size))

    def append(self, leaf: bytes) -> None:
        """Grow by the hash of a leaf."""
        node, index, level = leaf, self.size, 0
        while True:
            if index in self._wanted[level]:
                self._kept[level][index] = node
            if not index & 1:
                break
            node, index, level = node_hash(self.hashes.pop(), node), index >> 1, level + 1
        self.hashes.append(node)
        self.size += 1

    def inclusion_proof(self, index: int) -> list[bytes]:
        """Return the proof of a leaf that was asked for, once the tree has grown."""
        return [self._hash(*one) for one in inclusion_ranges(index, self._goal)]

    def consistency_proof(self) -> list[bytes]:
        """Return the proof of the older tree, once the tree has grown."""
        return [self._hash(*one) for one in consistency_ranges(self._old_size, self._goal)]

    def _want(self, ranges: Iterable[Range]) -> None:
        for one in ranges:
            for start, end in _whole(*one):
                level = (end - start).bit_length() - 1
                self._wanted[level].add(start >> level)

    def _hash(self, start: int, end: int) -> bytes:
        pieces = [
            self._kept[(to - at).bit_length() - 1][at >> (to - at).bit_length() - 1]
            for at, to in _whole(start, end)
        ]
        node = pieces[-1]
        for left in reversed(pieces[:-1]):
            node = node_hash(left, node)
        return node


def inclusion_ranges(index: int, size: int) -> list[Range]:
    """Return the subtrees whose hashes prove a leaf, its sibling first (RFC 9162, 2.1.3.1)."""
    ranges: list[Range] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return ranges[::-1]


def consistency_ranges(old_size: int, size: int) -> list[Range]:
    """Return the subtrees whose hashes prove an older tree (RFC 9162, 2.1.4.1)."""
    ranges: list[Range] = []
    if old_size in {0, size}:
        return ranges
    start, end, is_whole = 0, size, True
    while old_size != end:
        middle = start + _split(end - start)
        if old_size <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start, is_whole = middle, False
    if not is_whole:
        ranges.append((start, end))
    return ranges[::-1]


def _whole(start: int, end: int) -> Iterator[Range]:
    """Yield the complete subtrees of one, largest first; splits keep `start` aligned."""
    while start < end:
        length = 1 << (end - start).bit_length() - 1
        yield start, start + length
        start += length


def _split(length: int) -> int:
    """Return the largest power of two that is smaller than `length`."""
    return 1 << (length - 1).bit_length() - 1
