"""A Merkle tree of claims, as OpenZeppelin's library builds it, and the two kinds of leaves that distributors check."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Any

import numpy as np

from nbext.client.addresses import Bytes, keccak, texts_of

HASH = 32


def _words(numbers: Iterable[int]) -> Bytes:
    """Return integers as the ABI has a uint256: 32 bytes each, the highest first."""
    joined = b"".join(number.to_bytes(HASH, "big") for number in numbers)
    return np.frombuffer(joined, np.uint8).reshape(-1, HASH)


def standard_leaves(addresses: Bytes, amounts: Collection[int]) -> Bytes:
    """Return the leaves of OpenZeppelin's standard tree: ``abi.encode(address, amount)``, hashed twice."""
    padded = np.pad(addresses, ((0, 0), (12, 0)))
    return keccak(keccak(np.hstack([padded, _words(amounts)])))


def indexed_leaves(addresses: Bytes, amounts: Collection[int]) -> Bytes:
    """Return the leaves of older distributors: the hash of ``abi.encodePacked(index, address, amount)``."""
    places = _words(range(len(amounts)))
    # 84 bytes, not the 64 of two nodes: no node passes for a leaf.
    return keccak(np.hstack([places, addresses, _words(amounts)]))


class MerkleTree:
    """A binary tree in which each node is the hash of its two children, the smaller one first.

    Attributes
    ----------
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

    @cached_property
    def hashes(self) -> list[str]:
        """The nodes as texts, 0x and 64 hex digits; the first is the root."""
        return texts_of(self.nodes.tobytes(), HASH)

    def proof(self, leaf: int) -> list[str]:
        """Return what a leaf is hashed with on its way to the root, from the bottom."""
        place, hashes, found = int(self.places[leaf]), self.hashes, list[str]()
        while place:
            found.append(hashes[place + 1 if place % 2 else place - 1])
            place = (place - 1) // 2
        return found


def _comparable(hashes: Bytes) -> Any:
    # Zeros at the end, which numpy does not look at, change nothing where all texts are of one length.
    return np.ascontiguousarray(hashes).view(f"S{HASH}").ravel()
