"""Buying and selling ERC20s on the sample's exchange, at made-up prices that never move."""

from __future__ import annotations

from tests.sample_generator.cast import contract
from tests.sample_generator.diary import Diary, by_key
from tests.sample_generator.draw import Draw

# Whole tokens for a million dollars, by symbol; the others cost a dollar each.
_PER_MILLION = {
    "WETH": 300,
    "stETH": 300,
    "WBTC": 10,
    "cbBTC": 10,
    "UNI": 120_000,
    "LINK": 55_000,
    "AAVE": 3_500,
    "MKR": 600,
    "LDO": 900_000,
    "PEPE": 100_000_000_000,
    "SHIB": 80_000_000_000,
    "APE": 1_500_000,
    "ENS": 50_000,
    "ARB": 2_500_000,
    "COMP": 20_000,
    "GRT": 10_000_000,
    "YFI": 180,
    "RPL": 180_000,
    "DEGEN": 250_000_000,
    "TOSHI": 2_000_000_000,
    "GMX": 70_000,
    "MAGIC": 5_000_000,
}


def raw_amount(key: str, dollars: int) -> int:
    """Return what that many dollars buy, in the token's smallest unit."""
    token = by_key()[key]
    per_million = _PER_MILLION.get(token.symbol or "", 1_000_000)
    unit: int = 10 ** (token.decimals or 0)
    return dollars * per_million * unit // 1_000_000


class Market:
    """The exchange: what is bought comes from it, and what is sold goes back to it."""

    def __init__(self, diary: Diary, draw: Draw) -> None:
        self.diary = diary
        self._draw = draw

    def buy(self, slot: int, key: str, wallet: str, dollars: int) -> int:
        """Write down a purchase, and return its raw amount: three digits, and in one of four cases a few units more.

        Those few units are what a floating-point number would lose; more digits would only cost space.
        """
        amount = raw_amount(key, dollars)
        # Round in decimal digits, which compress; a float's rounding would differ between machines.
        amount = int(str(amount)[:3].ljust(len(str(amount)), "0"))
        amount += self._draw.below(1_000) if self._draw.chance(25) else 0
        self.diary.write(slot, key, contract("exchange"), wallet, amount)
        return amount

    def sell(self, slot: int, key: str, wallet: str, amount: int) -> None:
        """Write down a sale."""
        self.diary.write(slot, key, wallet, contract("exchange"), amount)
