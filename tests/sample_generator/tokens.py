"""Stories about ERC20s: traders, long-term holders, whales, dormant wallets, newcomers, a migration."""

from __future__ import annotations

from nbext.engine.sample.known import TOKENS
from tests.sample_generator.cast import DEAD, ZERO, contract, lookalike, wallets
from tests.sample_generator.diary import key_of
from tests.sample_generator.draw import Draw
from tests.sample_generator.market import Market, raw_amount
from tests.sample_generator.slots import DAY, LAST_SLOT, PACES

# Each chain as often as it is written.
_CHAINS = (
    ("ethereum",) * 11 + ("polygon",) * 2 + ("optimism",) * 2 + ("base",) * 2 + ("arbitrum",) * 3
)
_KEPT = (
    "UNI",
    "UNI",
    "UNI",
    "ENS",
    "LINK",
    "LINK",
    "AAVE",
    "LDO",
    "MKR",
    "WETH",
    "stETH",
    "COMP",
    "WBTC",
)
_GREAT = (
    "USDC",
    "USDC",
    "USDT",
    "WETH",
    "WBTC",
    "UNI",
    "AAVE",
    "MKR",
    "LINK",
    "LDO",
    "PEPE",
    "SHIB",
)
_ON_BASE = ("USDC", "USDC", "DEGEN", "DEGEN", "AERO", "TOSHI", "WETH", "cbBTC")


def _tokens_of(chain: str) -> list[str]:
    # The old RPL is traded only by those who migrate.
    return sorted(
        {key_of(token) for token in TOKENS if token.chain == chain and token.symbol != "RPL"}
    )


def traders(market: Market, draw: Draw) -> None:
    """Buy one to three tokens at any time of the year; sell half or all of four in ten of them again."""
    of_chain = {chain: _tokens_of(chain) for chain in set(_CHAINS)}
    for wallet in wallets("trader"):
        chain = draw.pick(_CHAINS)
        for _ in range(1 + draw.below(2) + draw.below(2)):
            # Some are active on a second chain.
            if draw.chance(8):
                chain = draw.pick(_CHAINS)
            key = draw.pick(of_chain[chain])
            slot = draw.between(1, LAST_SLOT)
            amount = market.buy(slot, key, wallet, draw.tail(60, 50_000))
            if draw.chance(40):
                market.sell(
                    slot + draw.between(1, 120 * DAY), key, wallet, amount // draw.between(1, 2)
                )


def holders(market: Market, draw: Draw) -> None:
    """Buy two to four tokens in the first 120 days and keep them; one in six sells a part later."""
    for wallet in wallets("holder"):
        for symbol in draw.some(_KEPT, draw.between(2, 4)):
            slot = draw.between(1, 120 * DAY)
            amount = market.buy(slot, f"ethereum:{symbol}", wallet, draw.tail(2_000, 2_000_000))
            if draw.chance(16):
                market.sell(
                    slot + draw.between(60 * DAY, 200 * DAY),
                    f"ethereum:{symbol}",
                    wallet,
                    amount // 3,
                )


def whales(market: Market, draw: Draw) -> None:
    """Buy large amounts all year; some of it moves into the three shared safes, which are contracts."""
    for number, wallet in enumerate(wallets("whale")):
        for _ in range(draw.between(8, 14)):
            key = f"ethereum:{draw.pick(_GREAT)}"
            slot = draw.between(1, 330 * DAY)
            amount = market.buy(slot, key, wallet, draw.tail(300_000, 40_000_000))
            if draw.chance(25):
                safe = contract(f"safe {number % 3 + 1}")
                market.diary.write(slot + draw.between(1, 20 * DAY), key, wallet, safe, amount // 4)


def dormant(market: Market, draw: Draw) -> None:
    """Buy once in the first two months, and never move again."""
    for wallet in wallets("dormant"):
        key = draw.pick(_tokens_of("ethereum"))
        market.buy(draw.between(1, 60 * DAY), key, wallet, draw.tail(80, 20_000))


def newcomers(market: Market, draw: Draw) -> None:
    """Come to base in the last 90 days, later ones more often, and buy what is talked about."""
    for wallet in wallets("newcomer"):
        # The smaller of two draws: the closer to the end, the more of them come.
        start = LAST_SLOT - min(draw.between(0, 90 * DAY), draw.between(0, 90 * DAY))
        for symbol in draw.some(_ON_BASE, draw.between(1, 2)):
            market.buy(
                min(LAST_SLOT, start + draw.below(DAY)),
                f"base:{symbol}",
                wallet,
                draw.tail(20, 5_000),
            )


def bridgers(market: Market, draw: Draw) -> None:
    """Buy USDC on ethereum and bridge half: into the bridge there, minted on the other chain; some burn it back."""
    for wallet in draw.some(wallets("trader"), 500):
        chain = draw.pick(("base", "base", "arbitrum", "optimism", "polygon"))
        slot = draw.between(1, LAST_SLOT - DAY)
        amount = market.buy(slot, "ethereum:USDC", wallet, draw.tail(400, 200_000))
        market.diary.write(slot + 2, "ethereum:USDC", wallet, contract("bridge"), amount // 2)
        market.diary.write(slot + 4, f"{chain}:USDC", ZERO, wallet, amount // 2)
        back = slot + draw.between(10 * DAY, 100 * DAY)
        # Both legs or none: what left one chain must arrive on the other before the year ends.
        if draw.chance(40) and back + 4 <= LAST_SLOT:
            market.diary.write(back, f"{chain}:USDC", wallet, ZERO, amount // 2)
            market.diary.write(back + 4, "ethereum:USDC", contract("bridge"), wallet, amount // 2)


def migration(market: Market, draw: Draw) -> None:
    """Hand in the old RPL for the new one from day 100 on; a quarter of its holders never do."""
    for wallet in draw.some(wallets("holder"), 240):
        amount = raw_amount("ethereum:RPL", draw.tail(1_000, 100_000))
        market.diary.write(
            draw.between(1, 40 * DAY), "ethereum:RPL#2", contract("exchange"), wallet, amount
        )
        if draw.chance(75):
            slot = draw.between(100 * DAY, 160 * DAY)
            market.diary.write(slot, "ethereum:RPL#2", wallet, contract("migration"), amount)
            market.diary.write(slot, "ethereum:RPL", ZERO, wallet, amount)


def oddities(market: Market, draw: Draw) -> None:
    """Burn PEPE, send to oneself, send nothing, and poison address books with look-alikes."""
    for wallet in draw.some(wallets("trader"), 60):
        slot = draw.between(1, 300 * DAY)
        amount = market.buy(slot, "ethereum:PEPE", wallet, draw.tail(100, 10_000))
        market.diary.write(slot + 5 * DAY, "ethereum:PEPE", wallet, wallet, amount)
        market.diary.write(slot + 9 * DAY, "ethereum:PEPE", wallet, DEAD, amount // 3)
    for number, wallet in enumerate(wallets("whale")):
        friend = draw.pick(wallets("whale"))
        slot = draw.between(200 * DAY, LAST_SLOT)
        market.diary.write(slot, "ethereum:USDT", wallet, lookalike(friend, number), 0)


def closing(market: Market, draw: Draw) -> None:
    """Buy something on every chain in the last slot, so that all chains end at the same instant."""
    for chain in PACES:
        market.buy(LAST_SLOT, f"{chain}:USDC", draw.pick(wallets("holder")), 1_000)
