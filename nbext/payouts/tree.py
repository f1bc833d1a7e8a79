"""A Merkle tree of claims, as OpenZeppelin's library builds it, and the two kinds of leaves that distributors check."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nbext.client.addresses import Bytes, keccak

HASH = 32


def abi_words(numbers: Iterable[int]) -> Bytes:
    """Return integers as the ABI has a uint256: 32 bytes each, the highest first."""
    joined = b"".join(number.to_bytes(HASH, "big") for number in numbers)
    return np.frombuffer(joined, np.uint8).reshape(-1, HASH)


def standard_leaves(addresses: Bytes, amounts: Bytes) -> Bytes:
    """Return the leaves of OpenZeppelin's standard tree: ``abi.encode(address, amount)``, hashed twice."""
    padded = np.pad(addresses, ((0, 0), (12, 0)))
    return keccak(keccak(np.hstack([padded, amounts])))


def indexed_leaves(addresses: Bytes, amounts: Bytes) -> Bytes:
    """Return the leaves of older distributors: the hash of ``abi.encodePacked(index, address, amount)``."""
    # 84 bytes, not the 64 of two nodes: no node passes for a leaf.
    return keccak(np.hstack([abi_words(range(len(amounts))), addresses, amounts]))


class MerkleTree:
    """A binary tree in which each node is the hash of its two children, the smaller one first.

    Attributes
    ----------
    root
        The text of the hash of all leaves.
    nodes
        The hashes: the root, then each level from the right; the children of node i are 2i + 1 and 2i + 2.
    places
        Of each leaf, in the order given, its place among the nodes.
    """

    def __init__(self, leaves: Bytes) -> None:
        count = len(leaves)
        order = np.argsort(_comparable(leaves))
        self.nodes = np.empty((2 * count - 1, HASH), np.uint8)
        self.nodes[count - 1 :] = leaves[order[::-1]]
        self.places = np.empty(count, np.int64)
        self.places[order] = np.arange(2 * count - 2, count - 2, -1)
        end = count - 1
        while end:
            # All of whose children are there already.
            start = end // 2
            pairs = np.sort(_comparable(self.nodes[2 * start + 1 : 2 * end + 1]).reshape(-1, 2))
            self.nodes[start:end] = keccak(pairs.view(np.uint8))
            end = start
        self.root = self._text(0)

    def beside(self, places: Any) -> Any:
        """Return a row for each place: what it is hashed with on its way to the root, from the bottom, then zeros."""
        found = list[Any]()
        while not found or places.any():
            found.append(np.maximum(places + 2 * (places % 2) - 1, 0))
            places = np.maximum(places - 1, 0) // 2
        return np.column_stack(found)

    def proof(self, leaf: int) -> list[str]:
        """Return the texts of what a leaf is hashed with."""
        (nodes,) = self.beside(self.places[[leaf]]).tolist()
        return [self._text(node) for node in nodes if node]

    def elements(self, separator: bytes) -> Any:
        """Return an array of the nodes' texts as JSON has them in a list, each after what separates two of them."""
        before, digits = separator + b'"0x', self.nodes.tobytes().hex().encode()
        texts = np.empty(len(self.nodes), f"S{len(before)}, S{2 * HASH}, S1")
        texts["f0"], texts["f2"] = before, b'"'
        texts["f1"] = np.frombuffer(digits, f"S{2 * HASH}")
        return texts.view(f"S{texts.itemsize}")

    def _text(self, node: int) -> str:
        return f"0x{self.nodes[node].tobytes().hex()}"


def _comparable(hashes: Bytes) -> Any:
    # Zeros at the end, which numpy does not look at, change nothing where all texts are of one length.
    return np.ascontiguousarray(hashes).view(f"S{HASH}").ravel()
