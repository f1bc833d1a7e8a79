"""Sets of wallets: these, or all seen but these.

What is seen is joined in once, at the end, and only where something is complemented: ``A and not B`` never
looks at all wallets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Wallets:
    """A set of wallets.

    Attributes
    ----------
    table
        One column, ``wallet``, each once.
    all_but
        The set is every wallet seen that is not in the table.
    loose
        The table may hold wallets that are not seen (chosen by what they are, not by what they did).
    """

    table: ir.Table
    all_but: bool = False
    loose: bool = False


def complement(wallets: Wallets) -> Wallets:
    """Return the wallets seen that are not in the set."""
    return replace(wallets, all_but=not wallets.all_but)


def both(sets: Sequence[Wallets]) -> Wallets:
    """Return the wallets that are in every set."""
    these = [one for one in sets if not one.all_but]
    others = [one.table for one in sets if one.all_but]
    if not these:
        return Wallets(_union(others), all_but=True, loose=any(one.loose for one in sets))
    # Sets made of what wallets did come first: they are the smaller ones, and are all seen.
    these.sort(key=lambda one: one.loose)
    table = reduce(lambda left, right: left.semi_join(right, "wallet"), (one.table for one in these))
    table = reduce(lambda left, right: left.anti_join(right, "wallet"), others, table)
    return Wallets(table, loose=all(one.loose for one in these))


def either(sets: Sequence[Wallets]) -> Wallets:
    """Return the wallets that are in at least one set."""
    if any(one.all_but for one in sets):
        return complement(both([complement(one) for one in sets]))
    return Wallets(_union([one.table for one in sets]), loose=any(one.loose for one in sets))


def settled(wallets: Wallets, seen: Callable[[], ir.Table]) -> ir.Table:
    """Return the set's table; ``seen`` builds the wallets seen, and is asked only where they matter."""
    if wallets.all_but:
        return seen().anti_join(wallets.table, "wallet")
    return wallets.table.semi_join(seen(), "wallet") if wallets.loose else wallets.table


def _union(tables: Sequence[ir.Table]) -> ir.Table:
    return tables[0] if len(tables) == 1 else reduce(lambda left, right: left.union(right), tables).distinct()
