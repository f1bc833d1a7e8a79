"""Sets of wallets in memory: each leaf is fetched as integers, and the sets are combined as bitmaps.

A wallet is a small integer, so a set of many is a bit for each (`Bits`), and a set of few is those integers.

At many blocks at once (`Throughout`) there is beside each wallet a bit for each block at which it is in the set: one
reading of the history, and one walk through the tree of sets, answers for all blocks. A series of 52 blocks of a token
with 700,000 holders and 1.6 million rows of history takes as long as four of these questions. Of questions that differ
only in their block (`Series`) a statement has the first and last block of all in the place of the block. A condition
that uses the block in another way, as one that counts transfers does, makes the statements differ: its questions are
answered one by one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nbext.core.uint256 import LIMB_BASE
from nbext.engine.query.amounts import KEY_DIGITS
from nbext.engine.query.set_tree import ENTERS, LEAVES, Leaf, Narrowed, Tree, Union
from nbext.engine.query.sql import SqlBuilder

if TYPE_CHECKING:
    from nbext.engine.dataset import Question
    from nbext.engine.query.sql import Layers

    Wallets = np.ndarray[tuple[int], np.dtype[np.int32]]
    Ranks = np.ndarray[tuple[int], np.dtype[np.int64]]
    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
    Octets = np.ndarray[tuple[int], np.dtype[np.uint8]]
    WalletSet: TypeAlias = "Wallets | Bits"
    # A bit for each block.
    BlockBits = np.ndarray[tuple[int], np.dtype[np.uint64]]

Found = TypeVar("Found", bound=Sized)
# Fewer wallets than this are a set as they are; of more there is a bit for every wallet of the data.
_FEW = 20_000
# So many pairs of wallets and their blocks are put together before the next part of a union is fetched.
_AT_A_TIME = 4_000_000
_NONE, _ALL = np.uint64(0), ~np.uint64(0)
# A year of Ethereum has 2.6 million blocks, of which a table has a byte each.
_LOOKED_UP = 8_000_000
# Behind every number that orders wallets.
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Bits:
    """A set of many wallets: a bit for each wallet of the data up to its last, and none behind that.

    Of 12 million wallets a set takes 1.5 MB, and what three have in common is counted in 1 ms; as arrays of ids, with
    a table of bytes for each, they took 7 to 9 MB and 24 ms. Of the largest contracts of 10 million transfers, "at
    least X of A, and B, and not C" took 59 ms as one statement of joins.
    """

    octets: Octets

    def __len__(self) -> int:
        return int(np.bitwise_count(self.octets.view(np.uint64)).sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The memory that the set takes."""
        return self.octets.nbytes

    @property
    def wallets(self) -> Wallets:
        """The wallets, in order."""
        return np.flatnonzero(np.unpackbits(self.octets, bitorder="little").view(bool)).astype(
            np.int32
        )

    def has(self, wallets: Wallets) -> Mask:
        """Return which of some wallets are in the set."""
        # The last octet has no bit, so it stands for all behind it.
        octets = self.octets.take(wallets >> 3, mode="clip")
        return (octets >> (wallets & 7).astype(np.uint8) & 1).view(bool)

    def kept(self, others: Bits, inside: bool) -> Bits:
        """Return those of the wallets that are in another set, too; or, not ``inside``, those that are not."""
        shorter = min(len(self.octets), len(others.octets))
        octets = self.octets[: shorter if inside else None].copy()
        octets[:shorter] &= others.octets[:shorter] if inside else ~others.octets[:shorter]
        return Bits(octets)

    def joined(self, other: Bits) -> Bits:
        """Return the wallets of both sets."""
        short, long = sorted((self.octets, other.octets), key=len)
        octets = long.copy()
        octets[: len(short)] |= short
        return Bits(octets)


def packed(one: WalletSet) -> Bits:
    """Return a set of wallets as bits."""
    if isinstance(one, Bits):
        return one
    # In words of 64 bits, and none behind the last.
    members = np.zeros((int(one.max(initial=-1)) // 64 + 2) * 64, bool)
    # By integers of 64 bits NumPy writes three times as fast.
    members[one.astype(np.intp)] = True
    return Bits(np.packbits(members, bitorder="little"))


def settled(wallets: Wallets) -> WalletSet:
    """Return wallets as a set, in the way that is faster for so many."""
    return wallets if len(wallets) < _FEW else packed(wallets)


def wallets_of(one: WalletSet) -> Wallets:
    """Return the wallets of a set, in no order."""
    return one.wallets if isinstance(one, Bits) else one


def combined(node: Tree, fetch: Callable[[Leaf], WalletSet]) -> WalletSet:
    """Return the wallets of a tree; statements that cannot matter are not fetched."""

    def union(parts: Iterable[WalletSet]) -> WalletSet:
        few: list[Wallets] = []
        many: Bits | None = None
        for part in parts:
            if isinstance(part, Bits):
                many = part if many is None else many.joined(part)
            else:
                few.append(part)
        wallets = np.concatenate([np.empty(0, np.int32), *few])
        # A hundred sets that were read with their columns may have ten million wallets: to sort those takes a second.
        if many is None and len(wallets) < _FEW:
            return np.unique(wallets)
        return packed(wallets) if many is None else many.joined(packed(wallets))

    return _walked(node, fetch, union, kept)


def kept(found: WalletSet, others: WalletSet, inside: bool) -> WalletSet:
    """Return those of some wallets that are in another set; or, not ``inside``, those that are not."""
    if isinstance(found, Bits):
        if not inside or isinstance(others, Bits):
            return found.kept(packed(others), inside)
        found, others = others, found
    wallets: Wallets = found[among(found, others) == inside]
    return wallets


def in_common(sets: Mapping[int, WalletSet], together: Iterable[Sequence[int]]) -> Iterator[int]:
    """Yield how many wallets are in each of some sets; after the first, ``~place`` leaves out those of a set."""
    # The intersections on the way to the last one that was counted: most begin as the one before them.
    path: list[tuple[int, WalletSet]] = []
    for places in together:
        same = 0
        while same < min(len(places), len(path)) and path[same][0] == places[same]:
            same += 1
        del path[same:]
        for place in places[same:]:
            one = sets[~place if place < 0 else place]
            path.append((place, kept(path[-1][1], one, place >= 0) if path else one))
        yield len(path[-1][1])


def throughout(node: Tree, fetch: Callable[[Leaf], Throughout]) -> Throughout:
    """Return the wallets of a tree at each block."""

    def keep(found: Throughout, others: Throughout, inside: bool) -> Throughout:
        bits = others.of(found.wallets)
        return found.kept(bits if inside else ~bits)

    return _walked(node, fetch, merged, keep)


def _walked(
    node: Tree,
    fetch: Callable[[Leaf], Found],
    union: Callable[[Iterable[Found]], Found],
    keep: Callable[[Found, Found, bool], Found],
) -> Found:
    def walk(node: Tree) -> Found:
        if isinstance(node, Union):
            return union(map(walk, node.parts))
        if not isinstance(node, Narrowed):
            return fetch(node)
        found = walk(node.first)
        for inside, others in ((True, node.inside), (False, node.outside)):
            for other in others:
                # Nothing is left to narrow: the rest would be fetched for nothing.
                if not len(found):
                    return found
                found = keep(found, walk(other), inside)
        return found

    return walk(node)


def first_of(wallets: Wallets, limit: int, *, last: bool = False) -> Wallets:
    """Return the lowest wallets, in order: the first by address; or the ``last``, from the highest down."""
    if last:
        return -first_of(-wallets, limit)
    # Partitioning first: to sort two million wallets for the first ten thousand would take most of the answer.
    if limit < len(wallets):
        wallets = np.partition(wallets, limit)[:limit]
    # Most come in order: then this sort has nothing to do, and another takes 20 ms for 700,000.
    return np.sort(wallets, kind="stable")


def first_by(
    wallets: Wallets, keys: pa.Table, limit: int, *, descending: bool, missing_last: bool
) -> tuple[Wallets, Ranks]:
    """Return the first wallets by the integer beside ``wallet`` in a table, then by address, all that tie included.

    Beside them their ranks, which only equal integers share. A wallet without an integer has 0, or comes last.
    """
    keys, without = keys.filter(pc.is_valid(keys.column(1))), _LAST if missing_last else 0
    found, numbers = keys["wallet"].to_numpy(), keys.column(1).to_numpy()
    every = np.full(1 + max(found.max(initial=0), wallets.max()), without)
    every[found] = -numbers if descending else numbers
    ranks = every[wallets]
    if limit < len(wallets):
        first = ranks <= np.partition(ranks, limit - 1)[limit - 1]
        wallets, ranks = wallets[first], ranks[first]
    order = np.lexsort((wallets, ranks))
    return wallets[order], ranks[order]


def tied(ranks: Ranks) -> Ranks:
    """Return the places of ranks in order that others share, and that are no whole amounts but sort keys of some."""
    same = ranks[1:] == ranks[:-1]
    alike = np.append(same, False) | np.append(False, same)
    return np.flatnonzero(alike & (abs(ranks) >= 10**KEY_DIGITS))


def apart(ranks: Ranks, most: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of about ``most`` ranks in order that share none with another range."""
    start = 0
    while start < len(ranks):
        last = ranks[min(start + most, len(ranks)) - 1]
        end = int(np.searchsorted(ranks, last, side="right"))
        yield start, end
        start = end


def placed(wallets: Wallets, found: pa.Table) -> pa.Array:
    """Return the column beside ``wallet`` in a table for each of some wallets; null where one is not in it."""
    if not found.num_rows:
        return pa.nulls(len(wallets), found.schema.field(1).type)
    keys = found["wallet"].to_numpy()
    if np.array_equal(keys, wallets):
        return found.column(1).combine_chunks()
    order = np.argsort(keys, kind="stable")
    place, there = _places(wallets, keys[order])
    return found.column(1).combine_chunks().take(pa.array(order[place], mask=~there))


def _places(wallets: Wallets, ordered: Wallets) -> tuple[Ranks, Mask]:
    """Return the place of each of some wallets among others, which are in order, and whether it is there."""
    place = np.searchsorted(ordered, wallets).clip(max=len(ordered) - 1)
    return place, ordered[place] == wallets


def among(wallets: Wallets, others: WalletSet) -> Mask:
    """Return which of some wallets are in a set."""
    # 2,000 among as many take 0.02 ms; a table of bytes for all of 3.4 million wallets 0.4 ms.
    if not isinstance(others, Bits) and 0 < len(others) < _FEW - len(wallets):
        return _places(wallets, np.sort(others))[1]
    return packed(others).has(wallets)


@dataclass(frozen=True)
class Throughout:
    """The wallets that are in a set at some block, in order and each once, and at which: a bit for each block.

    What was just fetched has a wallet in any order, as often as it has rows: `merged` makes a set of it.
    """

    wallets: Wallets
    bits: BlockBits

    def __len__(self) -> int:
        return len(self.wallets)

    def at(self, point: int) -> Wallets:
        """Return the wallets at one block, by its number."""
        found: Wallets = self.wallets[_has(self.bits, point)]
        return found

    def counts(self, points: int) -> list[int]:
        """Return how many wallets there are at each block."""
        return [int(number) for (number,) in _summed(self.bits, [np.ones(len(self.bits))], points)]

    def of(self, wallets: Wallets) -> BlockBits:
        """Return the bits of some wallets."""
        if not len(self.wallets):
            return np.zeros(len(wallets), np.uint64)
        place, there = _places(wallets, self.wallets)
        return np.where(there, self.bits[place], _NONE)

    def kept(self, bits: BlockBits) -> Throughout:
        """Return the wallets at those of these blocks at which they are already in the set."""
        both = self.bits & bits
        return Throughout(self.wallets[both != _NONE], both[both != _NONE])


def merged(parts: Iterable[Throughout]) -> Throughout:
    """Return the wallets of all parts, each once; in a part a wallet may be several times."""
    found, most = [Throughout(np.empty(0, np.int32), np.empty(0, np.uint64))], _AT_A_TIME
    for part in parts:
        found.append(part.kept(part.bits))
        # Of 200 parts of a million wallets, only a few are in memory at a time.
        if sum(map(len, found)) > most:
            found = [_merged_once(found)]
            # Twice: a large union is not made anew for each small part after it.
            most = max(_AT_A_TIME, 2 * len(found[0]))
    return _merged_once(found)


def always(one: WalletSet) -> Throughout:
    """Return a set that has the same wallets at every block."""
    wallets = np.sort(wallets_of(one))
    return Throughout(wallets, np.full(len(wallets), _ALL))


def bits_of(rows: Any, blocks: Sequence[int]) -> BlockBits:
    """Return at which of some blocks, in ascending order, each of fetched rows stood."""
    if ENTERS not in rows.schema.names:
        return np.full(rows.num_rows, _ALL)
    # The bits of the blocks before the number n: bits n and higher are not set.
    before = np.array([(1 << number) - 1 for number in range(len(blocks) + 1)], np.uint64)
    entered, left = (before[_numbers(rows[name].to_numpy(), blocks)] for name in (ENTERS, LEAVES))
    bits: BlockBits = left & ~entered
    return bits


def _numbers(ats: Ranks, blocks: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return how many of some blocks are before each of other ones."""
    first, last = blocks[0], blocks[-1]
    if last - first > _LOOKED_UP:
        return np.searchsorted(np.array(blocks), ats)
    # Ten times as fast as a search.
    numbers = np.repeat(np.arange(len(blocks) + 1, dtype=np.uint8), [1, *np.diff(blocks), 1])
    found: np.ndarray[Any, Any] = numbers[(ats - first).clip(0, last - first + 1)]
    return found


def totals_of(
    found: Throughout, batches: Iterable[pa.RecordBatch], blocks: Sequence[int]
) -> list[int]:
    """Return the exact sums of a column, the last one of fetched rows, at each block, of the wallets found."""
    sums = [0] * len(blocks)
    for rows in batches:
        bits = bits_of(rows, blocks) & found.of(rows["wallet"].to_numpy())
        scales, pieces = zip(*_pieces(rows.column(rows.num_columns - 1)), strict=True)
        for point, parts in enumerate(_summed(bits, pieces, len(blocks))):
            sums[point] += sum(scale * int(part) for scale, part in zip(scales, parts, strict=True))
    return sums


def _pieces(column: pa.Array) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """Yield integers as pieces of 32 bits and what each piece is to be multiplied by.

    Floats add a million of them exactly.
    """
    limbs = column.flatten() if pa.types.is_struct(column.type) else [column]
    for place, limb in enumerate(reversed(limbs)):
        width = limb.type.bit_width // 32
        pieces = np.frombuffer(limb.buffers()[1], np.uint32)[
            limb.offset * width : (limb.offset + len(limb)) * width
        ]
        for number in range(width):
            piece = pieces[number::width]
            # The highest has the sign. Most amounts have but the lowest ones.
            if piece.any() or not place + number:
                yield (
                    LIMB_BASE**place << 32 * number,
                    piece.view(np.int32) if number == width - 1 else piece,
                )


def _merged_once(parts: Sequence[Throughout]) -> Throughout:
    wallets = np.concatenate([part.wallets for part in parts])
    bits = np.concatenate([part.bits for part in parts])
    if not len(wallets):
        return Throughout(wallets, bits)
    # A history is stored in this order, which a stable sort finds at once.
    order = np.argsort(wallets, kind="stable")
    wallets, bits = wallets[order], bits[order]
    first = np.flatnonzero(np.concatenate([[True], wallets[1:] != wallets[:-1]]))
    return Throughout(wallets[first], np.bitwise_or.reduceat(bits, first))


def _summed(
    bits: BlockBits, weights: Sequence[np.ndarray[Any, Any]], points: int
) -> np.ndarray[Any, Any]:
    """Return the sum of each weight over the rows of each block."""
    # Most rows have the bits of many others.
    encoded = pa.array(bits).dictionary_encode()
    groups, distinct = encoded.indices.to_numpy(), encoded.dictionary.to_numpy()
    sums = np.array([np.bincount(groups, weight, len(distinct)) for weight in weights]).T
    return np.array([sums[_has(distinct, point)].sum(axis=0) for point in range(points)])


def _has(bits: BlockBits, point: int) -> Mask:
    return (bits >> np.uint64(point) & np.uint64(1)).astype(bool)


# A bit of 64 for each question; of fewer questions, one by one is as fast.
MOST, FEWEST = 64, 3


@dataclass(frozen=True)
class Series:
    """Questions by their places, and the block at which each is asked, in ascending order.

    ``question`` is one of them.
    """

    question: Question
    blocks: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last block."""
        return self.blocks[0], self.blocks[-1]


def series_of(
    questions: Sequence[Question], layers: Layers | None, *, columns: bool
) -> Iterator[Series]:
    """Yield the questions that are alike but for one block, at least `FEWEST` and at most `MOST` of them at a time.

    ``columns``: their first columns, too.
    """
    alike: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(questions):
        sql = SqlBuilder(layers, span=(0, 0))
        sets = one.wallets(sql).tree
        column = one.columns[0].values(sql) if columns else ""
        key = repr((sets, sql.statement(column)))
        # Several blocks, as of two chains, are no one moment.
        if sql.covered and len(sql.moments) == 1:
            alike[key][sql.moments.pop()].append(place)
    for at in alike.values():
        blocks = sorted(at)
        for start in range(0, len(blocks), MOST):
            some = blocks[start : start + MOST]
            if len(some) >= FEWEST:
                places = tuple(tuple(at[block]) for block in some)
                yield Series(questions[places[0][0]], tuple(some), places)
