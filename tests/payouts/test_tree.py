"""Trees, leaves and proofs, held to a plain reading of what distributors check."""

from __future__ import annotations

import numpy as np
from Crypto.Hash import keccak as one_keccak
from hypothesis import given
from hypothesis import strategies as st

from nbext.client.addresses import keccak
from nbext.payouts.tree import MerkleTree, abi_words, indexed_leaves, standard_leaves

CLAIMS = st.dictionaries(
    st.binary(min_size=20, max_size=20), st.integers(1, 2**256 - 1), min_size=1, max_size=40
)


def hashed(data):
    return one_keccak.new(digest_bits=256, data=data).digest()


def folded(leaf, proof):
    """What MerkleProof.verify of the contracts makes of a leaf and its proof."""
    for one in proof:
        leaf = hashed(b"".join(sorted((leaf, bytes.fromhex(one[2:])))))
    return "0x" + leaf.hex()


def packed(addresses):
    return np.frombuffer(b"".join(addresses), np.uint8).reshape(-1, 20)


@given(width=st.integers(0, 135), rows=st.integers(0, 1100), seed=st.integers(0, 2**32 - 1))
def test_many_hashes_at_a_time_are_those_of_one_at_a_time(width, rows, seed):
    texts = np.random.default_rng(seed).integers(0, 256, (rows, width), np.uint8)
    found = [row.tobytes() for row in keccak(texts)]
    some = {*range(0, rows, 97), *range(max(rows - 2, 0), rows)}
    assert [found[at] for at in sorted(some)] == [
        hashed(texts[at].tobytes()) for at in sorted(some)
    ]
    assert len(found) == rows


@given(claims=CLAIMS)
def test_each_leaf_is_folded_by_its_proof_into_the_root(claims):
    amounts = list(claims.values())
    numbers = [amount.to_bytes(32, "big") for amount in amounts]
    standard = [
        hashed(hashed(bytes(12) + one + number))
        for one, number in zip(claims, numbers, strict=True)
    ]
    indexed = [
        hashed(at.to_bytes(32, "big") + one + number)
        for at, (one, number) in enumerate(zip(claims, numbers, strict=True))
    ]
    for plain, leaves in ((standard, standard_leaves), (indexed, indexed_leaves)):
        made = leaves(packed(claims), abi_words(amounts))
        assert [row.tobytes() for row in made] == plain
        tree = MerkleTree(made)
        proofs = [tree.proof(at) for at in range(len(plain))]
        assert {folded(leaf, one) for leaf, one in zip(plain, proofs, strict=True)} == {tree.root}
        # The order in which leaves are given is no part of the tree.
        assert MerkleTree(made[::-1]).root == tree.root


def test_a_tree_of_one_leaf_is_the_leaf():
    leaf = standard_leaves(packed([bytes(20)]), abi_words([7]))
    tree = MerkleTree(leaf)
    assert (tree.root, tree.proof(0)) == ("0x" + leaf[0].tobytes().hex(), [])


def test_no_node_of_a_tree_passes_for_a_claim():
    """A second preimage: 64 bytes of two nodes are also those of an encoded address and amount."""
    addresses = packed([bytes([number]) * 20 for number in range(8)])
    amounts = abi_words(range(1, 9))
    leaves = standard_leaves(addresses, amounts)
    nodes = {row.tobytes() for row in MerkleTree(leaves).nodes}
    # Hashed once, such a claim would be a node; hashed twice it is none.
    for above in MerkleTree(leaves).nodes[:7]:
        assert hashed(above.tobytes()) not in nodes
