"""The Merkle tree against RFC 6962: known heads, and a model that follows its recursive text."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.ledger.merkle import (
    CompactRange,
    is_consistent,
    leaf_hash,
    root_by_inclusion,
)
from tests.ledger.merkle_tree import MerkleTree

LEAVES = [
    bytes.fromhex(one)
    for one in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""Of the first n of these leaves: the test data of the transparency-dev/merkle project."""


def model(leaves):
    """Return the head of RFC 6962, 2.1, in the words of its text."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    both = model(leaves[:split]) + model(leaves[split:])
    return hashlib.sha256(b"\x01" + both).digest()


def hashes(count):
    """Return so many leaf hashes."""
    return [leaf_hash(str(number).encode()) for number in range(count)]


@pytest.mark.parametrize("size", range(9))
def test_known_trees_have_their_roots(size):
    """Both forms of a tree agree with published roots."""
    leaves = [leaf_hash(leaf) for leaf in LEAVES[:size]]
    grown = CompactRange()
    grown.extend(leaves)
    assert grown.root().hex() == ROOTS[size]
    assert MerkleTree(leaves).root().hex() == ROOTS[size]


@given(st.integers(0, 300), st.integers(0, 300))
def test_trees_grow_as_the_rfc_says(first, more):
    """A range that was stored and read again grows to the same root, with the same proofs."""
    leaves = hashes(first + more)
    grown = CompactRange()
    grown.extend(leaves[:first])
    grown = CompactRange.from_bytes(first, grown.to_bytes())
    grown.extend(leaves[first:])
    tree = MerkleTree(leaves)
    assert grown.root() == tree.root() == model(leaves)
    assert tree.root(first) == model(leaves[:first])


def test_every_proof_of_small_trees_holds_and_no_other_does():
    """Inclusion and consistency of all trees up to 20 leaves; proofs of other places fail."""
    tree = MerkleTree(hashes(20))
    for size in range(1, 21):
        root = tree.root(size)
        for index in range(size):
            proof = tree.inclusion_proof(index, size)
            leaf = hashes(20)[index]
            assert root_by_inclusion(leaf, index, size, proof) == root
            if size > 1:
                other = (index + 1) % size
                assert _root_or_none(leaf, other, size, proof) != root
            assert _root_or_none(leaf, index, size, [*proof, root]) is None
        for old in range(size + 1):
            proof = tree.consistency_proof(old, size)
            assert is_consistent(old, tree.root(old), size, root, proof)
            assert not is_consistent(old, root[::-1], size, root, proof)
            assert not is_consistent(old, tree.root(old), size, root, [*proof, root])
            if 0 < old < size:
                assert not is_consistent(old, tree.root(old), size, root[::-1], proof)
                assert not is_consistent(old, tree.root(old), size, root, proof[:-1])


@pytest.mark.parametrize(
    ("size", "joined"), [(1, b""), (0, b"\0" * 32), (3, b"\0" * 65), (-1, b"")]
)
def test_a_range_that_fits_no_size_is_refused(size, joined):
    """A damaged head is not taken for a tree."""
    with pytest.raises(ValueError, match=r"make a tree|whole hashes"):
        CompactRange.from_bytes(size, joined)


@pytest.mark.parametrize(("index", "size"), [(-1, 2), (2, 2), (0, 4)])
def test_no_proof_leaves_the_tree(index, size):
    """What is not in the tree cannot be proved."""
    with pytest.raises(IndexError):
        MerkleTree(hashes(3)).inclusion_proof(index, size)
    with pytest.raises(IndexError):
        MerkleTree(hashes(3)).consistency_proof(size + 1, size)


def _root_or_none(leaf, index, size, proof):
    try:
        return root_by_inclusion(leaf, index, size, proof)
    except ValueError:
        return None
