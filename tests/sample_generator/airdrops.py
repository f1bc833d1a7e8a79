"""Stories about airdrops: those who claim and sell, groups that send all to one wallet, and spam."""

from __future__ import annotations

from functools import cache

from tests.sample_generator.cast import ROLES, ZERO, address, contract, wallets
from tests.sample_generator.diary import by_key
from tests.sample_generator.draw import Draw
from tests.sample_generator.market import Market
from tests.sample_generator.slots import DAY, LAST_SLOT

ARB_DAY, OP_DAY = 80, 150
_UNIT = 10**18


def claims(market: Market, draw: Draw) -> None:
    """Claim ARB and OP: farmers sell nearly all within a week, half of the traders who claim keep it."""
    for wallet in (*wallets("farmer"), *draw.some(wallets("trader"), 700)):
        keeps = wallet not in _farmers() and draw.chance(50)
        for key, day in (("arbitrum:ARB", ARB_DAY), ("optimism:OP", OP_DAY)):
            if draw.chance(70):
                _claim(market, draw, wallet, key, day * DAY, keeps=keeps)


@cache
def _farmers() -> frozenset[str]:
    return frozenset(wallets("farmer"))


def _claim(market: Market, draw: Draw, wallet: str, key: str, start: int, *, keeps: bool) -> None:
    slot = start + draw.below(10 * DAY)
    amount = draw.between(5, 16) * 125 * _UNIT
    market.diary.write(slot, key, contract("distributor"), wallet, amount)
    if not keeps and draw.chance(90):
        market.sell(slot + draw.between(1, 7 * DAY), key, wallet, amount)


def sybils(market: Market, draw: Draw) -> None:
    """Claim 625 ARB each and send it within a day to the leader of the group, who sells it all."""
    size = ROLES["sybil"] // ROLES["leader"]
    for number, leader in enumerate(wallets("leader")):
        start = (ARB_DAY + draw.below(4)) * DAY
        amount = 625 * _UNIT
        for member in wallets("sybil")[number * size : (number + 1) * size]:
            slot = start + draw.below(DAY // 2)
            market.diary.write(slot, "arbitrum:ARB", contract("distributor"), member, amount)
            market.diary.write(
                slot + draw.between(1, DAY // 2), "arbitrum:ARB", member, leader, amount
            )
        market.sell(start + 3 * DAY, "arbitrum:ARB", leader, amount * size)


# Key and number of wallets; in this order, 25 days apart.
_SENT = {
    "ethereum:<b>GIFT</b>": 500,
    "ethereum:$GIFT$": 400,
    "polygon:\u202eCDSU\u202c": 300,
    "polygon:BAYC": 250,
    "polygon:NA": 300,
    "base:U\u0405DC": 600,
    "optimism:{{key}}": 150,
    'arbitrum:=1+"1"': 200,
}


def spam(market: Market, draw: Draw) -> None:
    """Send the spam contracts' tokens to wallets that never asked, each contract within two days."""
    # Dormant wallets get none, or they would not look dormant.
    everyone = [
        wallet
        for role in ("trader", "holder", "whale", "newcomer", "gamer")
        for wallet in wallets(role)
    ]
    for number, (key, count) in enumerate(_SENT.items()):
        start = (120 + 25 * number) * DAY
        fungible = by_key()[key].standard == "ERC20"
        for place, wallet in enumerate(draw.some(everyone, count)):
            value = 1_000 * 10 ** (by_key()[key].decimals or 0) if fungible else place + 1
            market.diary.write(start + draw.below(2 * DAY), key, ZERO, wallet, value)


def largest_supply(market: Market, draw: Draw) -> None:
    """Mint 2^256 - 1 of one token and spread a part of it: amounts that no machine integer holds."""
    owner = address("spam owner")
    market.diary.write(30 * DAY, "ethereum:MAX", ZERO, owner, 2**256 - 1)
    for wallet in draw.some(wallets("whale"), 12):
        amount = 2**256 // draw.between(20, 90_000)
        market.diary.write(draw.between(31 * DAY, LAST_SLOT), "ethereum:MAX", owner, wallet, amount)
