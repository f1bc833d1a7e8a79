"""A total divided by weights into whole units: the sum is the total to the last one, within a cap and a floor."""

from __future__ import annotations

from collections.abc import Mapping

from nbext.errors import ValidationError


def fitting(weights: Mapping[str, int], total: int, at_least: int) -> dict[str, int]:
    """Return the weights of the wallets whose share of a total, before any cap and floor, is at least an amount."""
    whole = sum(weights.values())
    return {one: weight for one, weight in weights.items() if weight * total >= at_least * whole}


def shares(
    weights: Mapping[str, int], total: int, cap: int | None = None, floor: int = 0
) -> dict[str, int]:
    """Return the amount of each wallet: in proportion, but for those at the cap or at the floor.

    Units that are left over go to those of whom most of a unit was cut off; of equals to the first.

    Raises
    ------
    ValidationError
        The total cannot be divided so, or someone would get nothing.
    """
    most, count = total if cap is None else cap, len(weights)
    detail = f"{count:,} wallets with {floor:,} to {most:,} each do not get {total:,} together."
    bound, left, rest = dict[str, int](), total, dict(weights)
    if not count or floor > most or floor * count > total:
        raise ValidationError.of("/total", "range", detail)
    while True:
        whole = sum(rest.values()) or 1
        shared = {one: weight * left for one, weight in rest.items()}
        over = {one: part - most * whole for one, part in shared.items() if part > most * whole}
        under = {one: floor * whole - part for one, part in shared.items() if part < floor * whole}
        if not over and not under:
            break
        # Who is above the cap by more than others lack to the floor stays above it, whatever those are given.
        is_over = sum(over.values()) >= sum(under.values())
        bound |= dict.fromkeys(over, most) if is_over else dict.fromkeys(under, floor)
        rest = {one: weight for one, weight in rest.items() if one not in bound}
        left = total - sum(bound.values())
    if left and not any(rest.values()):
        raise ValidationError.of("/total", "range", detail)
    parts = {one: divmod(part, whole) for one, part in shared.items()}
    amounts = {one: bound[one] if one in bound else parts[one][0] for one in weights}
    # Sorting is stable: of equal remainders the first ones come first.
    ranked = sorted(parts, key=lambda one: parts[one][1], reverse=True)
    for one in ranked[: total - sum(amounts.values())]:
        amounts[one] += 1
    if empty := list(amounts.values()).count(0):
        detail = f"{empty:,} of {count:,} wallets would get less than one smallest unit, which is nothing."
        detail += " Leave them out with at_least, or give a floor."
        raise ValidationError.of("/rows", "range", detail)
    return amounts
