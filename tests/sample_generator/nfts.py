"""Stories about NFTs: communities that overlap, collectors who keep, flippers who do not, games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.sample_generator.cast import DEAD, ZERO, contract, digest, wallets
from tests.sample_generator.diary import Diary
from tests.sample_generator.draw import Draw
from tests.sample_generator.market import Market, raw_amount
from tests.sample_generator.slots import DAY, LAST_SLOT


@dataclass(frozen=True)
class Plan:
    """How one ERC721 collection lives: how many ids, minted when, whose community, sold how often."""

    key: str
    ids: int
    first_day: int
    last_day: int
    community: str = "collectors"
    sold: int = 40  # percent of owners who sell


PLANS = (
    Plan("ethereum:BAYC", 300, 1, 20, "apes", 35),
    Plan("ethereum:MAYC", 400, 25, 60, "apes", 45),
    Plan("ethereum:OTHR", 450, 110, 125, "apes", 50),
    Plan("ethereum:AZUKI", 300, 10, 30, "gardeners", 40),
    Plan("ethereum:BEANZ", 400, 70, 75, "gardeners", 45),
    Plan("ethereum:WPUNKS", 100, 1, 200, "apes", 25),
    Plan("ethereum:DOODLE", 300, 15, 40),
    Plan("ethereum:PPG", 260, 5, 30, "gardeners", 30),
    Plan("ethereum:MOONBIRD", 260, 90, 93),
    Plan("ethereum:CloneX", 260, 40, 60),
    Plan("ethereum:MEEBIT", 200, 1, 30),
    Plan("ethereum:MIL", 260, 130, 150, "collectors", 55),
    Plan("ethereum:CC", 200, 20, 45),
    Plan("ethereum:NOUN", 120, 1, 360, "apes", 10),
    Plan("ethereum:DEGODS", 200, 210, 215, "collectors", 60),
    Plan("ethereum:LAND", 200, 1, 150, "collectors", 20),
    Plan("ethereum:LAND#2", 240, 1, 150, "gamers", 20),
    Plan("ethereum:BLOCKS", 300, 1, 330, "collectors", 30),
    Plan("ethereum:ENS#2", 400, 1, 360, "holders", 5),
    Plan("polygon:BK", 300, 30, 120, "gamers", 30),
    Plan("polygon:LAND", 150, 60, 150, "gamers", 20),
    Plan("base:OKGO", 500, 290, 362, "newcomers", 10),
    Plan("arbitrum:FFP", 250, 100, 140, "gamers", 35),
)
_SIZES = {"apes": ("collector", 0, 260), "gardeners": ("collector", 160, 460)}


@cache
def community(name: str) -> Sequence[str]:
    """Return the wallets of a community; apes and gardeners share a hundred collectors."""
    if name in _SIZES:
        role, first, end = _SIZES[name]
        return wallets(role)[first:end]
    return wallets(name.removesuffix("s"))


def taker(draw: Draw, plan: Plan) -> str:
    """Return who takes the next piece: mostly the community, with a few wallets who take many."""
    roll = draw.below(100)
    if plan.key.startswith("ethereum:") and roll < 30:
        role = (
            "flipper"
            if roll < 14
            else "whale"
            if roll < 18
            else "holder"
            if roll < 24
            else "collector"
        )
        return draw.pick(wallets(role))
    crowd = community(plan.community)
    # The smaller of two draws: the first wallets of a community own the most.
    return crowd[min(draw.below(len(crowd)), draw.below(len(crowd)))]


def token_id(plan: Plan, number: int) -> int:
    """Return the id of the collection's next piece, in the form that the real contract uses."""
    if plan.key == "ethereum:ENS#2":
        return int(digest(f"name {number}"), 16)  # the hash of a name
    if plan.key == "ethereum:LAND":
        return (number % 40 << 128) + number // 40  # x in the upper half, y in the lower
    return number + (0 if plan.community == "apes" else 1)


def pieces(market: Market, draw: Draw) -> None:
    """Mint every piece and follow it from owner to owner; a few end burned."""
    flippers = frozenset(wallets("flipper"))
    # Enough for all that a flipper ever buys, whatever becomes of what he sells.
    for wallet in wallets("flipper"):
        market.buy(1, "ethereum:WETH", wallet, 400_000)
    for plan in PLANS:
        for number in range(plan.ids):
            _live(market, draw, plan, token_id(plan, number), flippers)


def _live(market: Market, draw: Draw, plan: Plan, piece: int, flippers: frozenset[str]) -> None:
    owner, slot = taker(draw, plan), draw.between(plan.first_day * DAY, plan.last_day * DAY)
    market.diary.write(slot, plan.key, ZERO, owner, piece)
    while owner in flippers or draw.chance(plan.sold):
        held = draw.between(1, 10 * DAY) if owner in flippers else draw.between(10 * DAY, 250 * DAY)
        bought, slot, buyer = slot, slot + held, taker(draw, plan)
        if slot > LAST_SLOT:
            return
        if owner in flippers:
            _settle(market.diary, draw, owner, bought, slot)
        market.diary.write(slot, plan.key, owner, buyer, piece)
        owner = buyer
    # A month after the last sale: nobody burns what he has just paid for.
    if draw.chance(2):
        market.diary.write(slot + 30 * DAY, plan.key, owner, DEAD, piece)


def _settle(diary: Diary, draw: Draw, flipper: str, bought: int, sold: int) -> None:
    """A flipper pays WETH for a piece and gets WETH for it: seven tenths of the price, up to twice."""
    price = raw_amount("ethereum:WETH", 100 * draw.between(5, 60))
    diary.write(bought, "ethereum:WETH", flipper, contract("marketplace"), price)
    diary.write(
        sold, "ethereum:WETH", contract("marketplace"), flipper, price * draw.between(7, 20) // 10
    )


# ERC1155: key, role of the players, how many ids, the most of one id at a time.
_ITEMS = (
    ("polygon:SKYWVR", "gamer", 120, 6),
    ("polygon:Sunflower Land Collectibles", "gamer", 60, 25),
    ("arbitrum:Treasures", "gamer", 40, 20),
    ("ethereum:ASSET", "gamer", 50, 10),
    ("ethereum:Parallel", "collector", 80, 3),
    ("ethereum:OPENSTORE", "collector", 150, 1),
)


def items(market: Market, draw: Draw) -> None:
    """Play: get items, hand some on, burn a few; and buy the games' own tokens."""
    for key, role, ids, most in _ITEMS:
        for wallet in draw.some(wallets(role), 450):
            number = min(draw.below(ids), draw.below(ids))
            item = int(digest(f"item {number}"), 16) if key.endswith("OPENSTORE") else number + 1
            count, slot = draw.between(1, most), draw.between(1, 340 * DAY)
            market.diary.write(slot, key, ZERO, wallet, item, count=count)
            if draw.chance(30):
                other, part = (
                    DEAD if draw.chance(15) else draw.pick(wallets(role)),
                    draw.between(1, count),
                )
                market.diary.write(
                    slot + draw.between(1, 60 * DAY), key, wallet, other, item, count=part
                )
    for wallet in wallets("gamer"):
        key = draw.pick(("arbitrum:MAGIC", "polygon:GHST"))
        market.buy(draw.between(1, LAST_SLOT), key, wallet, draw.tail(30, 8_000))
