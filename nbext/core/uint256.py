"""Amounts in a token's unit, turned into raw integers and back, exactly."""

from __future__ import annotations

from decimal import Decimal


class TooManyDecimals(ValueError):
    """An amount has more decimals than its token; ``places`` is how many."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.places = places


def to_raw(amount: Decimal | int, decimals: int) -> int:
    """Return an amount of token units in the token's smallest unit.

    >>> to_raw(Decimal("0.5"), 6)
    500000

    Raises
    ------
    TooManyDecimals
        The amount has more decimals than the token.
    """
    _, digits, exponent = Decimal(amount).as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits)) or "0")
    while exponent < 0 and number % 10 == 0 and number:
        number, exponent = number // 10, exponent + 1
    # No power of ten is made for zero, whose exponent may be anything.
    if not number:
        return 0
    if -exponent > decimals:
        raise TooManyDecimals(-exponent)
    return int(number * 10 ** (decimals + exponent))


def from_raw(raw: int, decimals: int) -> str:
    """Write a raw integer in token units, without trailing zeros.

    >>> from_raw(1500000, 6)
    '1.5'
    """
    digits = str(abs(raw)).rjust(decimals + 1, "0")
    whole, fraction = digits[: len(digits) - decimals], digits[len(digits) - decimals :].rstrip("0")
    return ("-" if raw < 0 else "") + f"{int(whole):,}" + ("." + fraction if fraction else "")
