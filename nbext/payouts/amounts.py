"""A total divided by weights into whole units: the sum is the total to the last one, within a cap and a floor."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nbext.errors import ValidationError


def shares(
    weights: Mapping[str, int],
    total: int,
    cap: int | None = None,
    floor: int = 0,
    at_least: int = 0,
) -> dict[str, int]:
    """Return the amount of each wallet: in proportion, but for those at the cap or at the floor.

    Wallets whose share, before any cap and floor, is less than ``at_least`` are left out. Units that are left over go
    to those of whom most of a unit was cut off; of equals to the first.

    Raises
    ------
    ValidationError
        The total cannot be divided so, or someone would get nothing.
    """
    least = at_least * sum(weights.values())
    weights = {one: part for one, part in weights.items() if part * total >= least}
    most, count = total if cap is None else cap, len(weights)
    detail = f"{count:,} wallets with {floor:,} to {most:,} each do not get {total:,} together."
    if not count or floor > most or floor * count > total:
        raise ValidationError.of("/total", "range", detail)
    # Of Python's integers: exact, however large.
    given, amounts = np.array(list(weights.values()), object), np.full(count, floor, object)
    left, free = total, np.arange(count)
    while True:
        rest = given[free]
        whole = int(rest.sum()) or 1
        parts = rest * left
        over, under = parts - most * whole, floor * whole - parts
        high, low = over > 0, under > 0
        if not (high.any() or low.any()):
            break
        # Who is above the cap by more than others lack to the floor stays above it, whatever those are given.
        is_over = over[high].sum() >= under[low].sum()
        bound, amount = (high, most) if is_over else (low, floor)
        amounts[free[bound]] = amount
        left -= amount * int(bound.sum())
        free = free[~bound]
    if left and not rest.any():
        raise ValidationError.of("/total", "range", detail)
    amounts[free] = parts // whole
    remainders = (parts % whole).tolist()
    # Sorting is stable: of equal remainders the first ones come first.
    ranked = sorted(range(len(free)), key=remainders.__getitem__, reverse=True)
    amounts[free[ranked[: total - amounts.sum()]]] += 1
    if empty := count - np.count_nonzero(amounts):
        detail = f"{empty:,} of {count:,} wallets would get less than one smallest unit, which is nothing."
        detail += " Leave them out with at_least, or give a floor."
        raise ValidationError.of("/rows", "range", detail)
    return dict(zip(weights, amounts.tolist(), strict=True))
