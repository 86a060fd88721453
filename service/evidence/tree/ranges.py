"""Which subtrees prove something of a tree (RFC 9162). Leaves are numbered from 0."""

from collections.abc import Iterator

Range = tuple[int, int]
"""The leaves of a subtree: from the first to before the second."""


def path_ranges(of: Range, size: int) -> list[Range]:
    """Return the subtrees whose hashes prove one of the tree's, its sibling first (2.1.3.1)."""
    ranges: list[Range] = []
    start, end = 0, size
    while (start, end) != of:
        middle = start + split(end - start)
        if of[0] < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start = middle
    return ranges[::-1]


def consistency_ranges(old_size: int, size: int) -> list[Range]:
    """Return the subtrees whose hashes prove an older tree (2.1.4.1)."""
    ranges: list[Range] = []
    if old_size in {0, size}:
        return ranges
    start, end, is_whole = 0, size, True
    while old_size != end:
        middle = start + split(end - start)
        if old_size <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((start, middle))
            start, is_whole = middle, False
    if not is_whole:
        ranges.append((start, end))
    return ranges[::-1]


def complete(start: int, end: int) -> Iterator[Range]:
    """Yield the complete subtrees of one, largest first; splits keep `start` aligned."""
    while start < end:
        length = 1 << (end - start).bit_length() - 1
        yield start, start + length
        start += length


def split(length: int) -> int:
    """Return the largest power of two that is smaller than `length`."""
    return 1 << (length - 1).bit_length() - 1
