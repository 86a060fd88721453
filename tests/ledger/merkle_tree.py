"""A whole Merkle tree in memory, cut by the recursive text of the RFCs: a model for the tests."""

from collections.abc import Iterable

from service.ledger.merkle import EMPTY_ROOT, node_hash


class MerkleTree:
    """A whole tree in memory (64 bytes a leaf), from which proofs are cut."""

    def __init__(self, leaves: Iterable[bytes]) -> None:
        """Take the hashes of the leaves, in their order."""
        self._levels = [list(leaves)]
        while len(below := self._levels[-1]) > 1:
            pairs = zip(below[::2], below[1::2], strict=False)
            self._levels.append([node_hash(left, right) for left, right in pairs])

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self._levels[0])

    def root(self, size: int | None = None) -> bytes:
        """Return the root of the first `size` leaves; None: of all."""
        size = self.size if size is None else size
        return self._subtree(0, size) if size else EMPTY_ROOT

    def inclusion_proof(self, index: int, size: int) -> list[bytes]:
        """Return the proof that the leaf at `index` is one of the first `size`; raises IndexError.

        RFC 9162, 2.1.3.1.
        """
        if not 0 <= index < size <= self.size:
            raise IndexError(f"no leaf {index} in a tree of {size}, of {self.size}")
        proof: list[bytes] = []
        start, end = 0, size
        while end - start > 1:
            middle = start + _split(end - start)
            if index < middle:
                proof.append(self._subtree(middle, end))
                end = middle
            else:
                proof.append(self._subtree(start, middle))
                start = middle
        return proof[::-1]

    def consistency_proof(self, old_size: int, size: int) -> list[bytes]:
        """Return the proof that the first `size` leaves begin with the first `old_size`.

        Raises IndexError. It is empty where either tree is, or both are one (RFC 9162, 2.1.4.1).
        """
        if not 0 <= old_size <= size <= self.size:
            raise IndexError(f"no trees of {old_size} and {size} in one of {self.size}")
        proof: list[bytes] = []
        start, end, is_whole = 0, size, True
        if old_size in {0, size}:
            return proof
        while old_size != end:
            middle = start + _split(end - start)
            if old_size <= middle:
                proof.append(self._subtree(middle, end))
                end = middle
            else:
                proof.append(self._subtree(start, middle))
                start, is_whole = middle, False
        if not is_whole:
            proof.append(self._subtree(start, end))
        return proof[::-1]

    def _subtree(self, start: int, end: int) -> bytes:
        """Return the hash over the leaves `start` to `end`; splits keep `start` aligned."""
        length = end - start
        if length & (length - 1) == 0:
            level = length.bit_length() - 1
            return self._levels[level][start >> level]
        middle = start + _split(length)
        return node_hash(self._subtree(start, middle), self._subtree(middle, end))


def _split(length: int) -> int:
    """Return the largest power of two that is smaller than `length`."""
    return 1 << (length - 1).bit_length() - 1
