"""EIP-55 checksums of many addresses at a time, in numpy: a hash's library takes one at a time, and ten times as long.

`nbext.core.addresses` checks a single address, without numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbext.core.addresses import WIDTH

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# Keccak-f[1600], as FIPS 202 numbers it: lane x, y is row x + 5y. How far each lane is rotated, where it then goes, and
# what is added to the first lane in each round.
_X, _Y = np.tile(np.arange(5), 5), np.repeat(np.arange(5), 5)
_LEFT = np.array(
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14],
    np.uint64,
)[:, None]
_RIGHT = 64 - _LEFT
_FROM = np.argsort(_Y + 5 * ((2 * _X + 3 * _Y) % 5))
_NEXT, _AFTER = (_X + 1) % 5 + 5 * _Y, (_X + 2) % 5 + 5 * _Y
_ROUNDS = np.array(
    [
        0x1,
        0x8082,
        0x800000000000808A,
        0x8000000080008000,
        0x808B,
        0x80000001,
        0x8000000080008081,
        0x8000000000008009,
        0x8A,
        0x88,
        0x80008009,
        0x8000000A,
        0x8000808B,
        0x800000000000008B,
        0x8000000000008089,
        0x8000000000008003,
        0x8000000000008002,
        0x8000000000000080,
        0x800A,
        0x800000008000000A,
        0x8000000080008081,
        0x8000000000008080,
        0x80000001,
        0x8000000080008008,
    ],
    np.uint64,
)


def checksums_match(digits: Bytes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Say of each row of 40 hex digits whether the case of its letters is its EIP-55 checksum.

    Many at a time: two million take 5 s on two cores; one call of a hash for each takes 40 s.
    """
    lower = np.ascontiguousarray(digits | 32)
    digest = _keccak(lower)[:, :WIDTH]
    high = np.empty(digits.shape, bool)
    high[:, ::2], high[:, 1::2] = digest >= 128, digest & 15 >= 8
    matches: np.ndarray[Any, np.dtype[np.bool_]] = (
        ((lower >= ord("a")) & high) == (digits != lower)
    ).all(axis=1)
    return matches


def _keccak(texts: Bytes) -> Bytes:
    """Return the Keccak-256 of each row of 40 bytes, which fill five of the 25 lanes."""
    lanes = np.zeros((25, len(texts)), np.uint64)
    lanes[:5] = texts.view("<u8").T
    # The padding: a bit after the text, and one at the end of the 17 lanes that take a text.
    lanes[5], lanes[16] = 1, 1 << 63
    moved, other = np.empty_like(lanes), np.empty_like(lanes)
    planes = lanes.reshape(5, 5, -1)
    for constant in _ROUNDS:
        column = np.bitwise_xor.reduce(planes, axis=0)
        turned = column << np.uint64(1) | column >> np.uint64(63)
        planes ^= np.roll(column, 1, axis=0) ^ np.roll(turned, -1, axis=0)
        # Shifted by 64, a lane is 0: the one that stays where it is comes out as it was.
        np.left_shift(lanes, _LEFT, out=other)
        other |= lanes >> _RIGHT
        np.take(other, _FROM, axis=0, out=moved, mode="clip")
        np.take(moved, _NEXT, axis=0, out=other, mode="clip")
        np.invert(other, out=other)
        other &= moved[_AFTER]
        np.bitwise_xor(moved, other, out=lanes)
        lanes[0] ^= constant
    return np.ascontiguousarray(lanes[:4].T).view(np.uint8)
