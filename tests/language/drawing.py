"""Random conditions over a small chain that a test writes itself; what they mean is `tests.oracle.meaning`.

A ``draw_NAME`` draws each condition.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import hypothesis.strategies as st

from nbext.core.addresses import BURN_ADDRESSES, checksummed
from nbext.core.times import iso
from nbext.engine.dataset import Contract
from nbext.language.conditions import CONDITIONS
from tests.language.tables import GENESIS, ZERO, stored_list

WALLETS = [ZERO, BURN_ADDRESSES[1], *(f"0x{number:040x}" for number in (5, 6, 7, 2**159))]
# Lists that a service stores, one with a wallet that no data has.
STORED = {
    one.id: one
    for one in map(stored_list, (WALLETS[2:4], [WALLETS[0], *WALLETS[4:], "0x" + "ee" * 20]))
}
LISTS = {
    name: [
        "0x" + one.path.read_bytes()[at : at + 20].hex() for at in range(0, 20 * one.wallets, 20)
    ]
    for name, one in STORED.items()
}
CONTRACTS = [
    Contract(0, 1, f"0x{0xC0:040x}", "ERC20", symbol="USDC", decimals=6),
    Contract(1, 1, f"0x{0xC1:040x}", "ERC20", symbol="WEI", decimals=0),
    Contract(2, 1, f"0x{0xC2:040x}", "ERC721", symbol="BAYC"),
    Contract(3, 1, f"0x{0xC3:040x}", "ERC1155", symbol="ITEMS"),
    Contract(4, 10, f"0x{0xC0:040x}", "ERC20", symbol="OP", decimals=18),
    Contract(5, 10, f"0x{0xC5:040x}", "ERC721", symbol="QUEST"),
]
LAST = {1: 12, 10: 9}
SECONDS = {1: 5 * 3600, 10: 7 * 3600}
AMOUNTS = [0, 1, 2, 10**6, 10**26 - 1, 10**26, 2**63, 2**127, 2**255, 2**256 - 1]
IDS = [0, 1, 2, 10**25, 2**256 - 1]


def bounds(
    values: list[Any], show: Any = lambda value: value, *, moved: bool = False
) -> st.SearchStrategy[dict[str, Any]]:
    """Draw min, max or both, in order; a max of 0 alone only of what was ``moved``."""

    def build(pair: tuple[Any, Any], which: str) -> dict[str, Any]:
        low, high = sorted(pair)
        if which == "max" and high == 0 and not moved:
            which = "both"
        return {
            key: show(value)
            for key, value in (("min", low), ("max", high))
            if which in (key, "both")
        }

    return st.builds(
        build,
        st.tuples(st.sampled_from(values), st.sampled_from(values)),
        st.sampled_from(["min", "max", "both"]),
    )


KINDS = [name for name in CONDITIONS if name != "segment"]
COUNTS = bounds([0, 1, 2, 3, 5])


def times(chain: int, last: int | None = None) -> st.SearchStrategy[Any]:
    """Draw a time up to the last block: a block, a time of or between blocks, hours back from it."""
    step, last = SECONDS[chain], LAST[chain] if last is None else last
    return st.one_of(
        st.integers(0, last),
        st.integers(0, last * step).map(lambda seconds: iso(GENESIS + seconds)),
        st.integers(0, last * step // 3600).map(lambda hours: f"{hours}h"),
    )


@st.composite
def windows(draw: Any, chain: int) -> dict[str, Any]:
    """Draw a window that is not empty: in blocks, from one to a later one."""
    first, last = sorted((draw(st.integers(0, LAST[chain])), draw(st.integers(0, LAST[chain]))))
    given = {"after": first, "before": last}
    if draw(st.booleans()):
        at = [GENESIS + block * SECONDS[chain] for block in (first, last)]
        # With or without the time of day: a date alone is the whole day.
        length = draw(st.sampled_from([None, 10]))
        shown = [datetime.fromtimestamp(one, UTC).isoformat()[:length] for one in at]
        given = dict(zip(given, shown, strict=True))
    return {
        key: given[key]
        for key in draw(st.sampled_from([["after"], ["before"], ["after", "before"]]))
    }


def named(draw: Any, contract: Contract) -> str:
    return draw(
        st.sampled_from([contract.symbol, contract.symbol.lower(), checksummed(contract.address)])
    )


def amounts(draw: Any, contract: Contract, *, moved: bool = False) -> tuple[dict[str, Any], str]:
    """Draw bounds of an amount, in raw integers or in the token's unit."""
    raw = draw(bounds(AMOUNTS, moved=moved))
    places = contract.decimals or 0
    if contract.standard != "ERC20" or draw(st.booleans()):
        return {
            key: draw(st.sampled_from([str(value), value])) for key, value in raw.items()
        }, "raw"
    padded = {key: str(value).rjust(places + 1, "0") for key, value in raw.items()}
    shown = {
        key: text[: len(text) - places] + "." + text[len(text) - places :]
        for key, text in padded.items()
    }
    return {
        key: text.rstrip("0").rstrip(".") if places else text[:-1] for key, text in shown.items()
    }, "token"


@st.composite
def conditions(draw: Any, end: dict[int, int], saved: bool) -> dict[str, Any]:
    """Draw one condition, of any kind; ``end`` is the block of asOf on each chain."""
    name = draw(st.sampled_from([*KINDS, "segment"] if saved else KINDS))
    if name == "segment":
        return {name: {"id": "first"}}
    chain = draw(st.sampled_from([1, 1, 10]))
    asked = globals()[f"draw_{name}"](draw, chain, end[chain])
    if chain == 10 and any(field.name == "chain" for field in CONDITIONS[name].fields):
        asked["chain"] = draw(st.sampled_from(["optimism", 10, "oeth"]))
    return {name: asked}


def draw_token(draw: Any, chain: int, end: int) -> dict[str, Any]:
    contract = draw(
        st.sampled_from(
            [one for one in CONTRACTS if one.chain_id == chain and one.standard == "ERC20"]
        )
    )
    asked: dict[str, Any] = {"token": named(draw, contract)}
    if draw(st.booleans()):
        asked["balance"], asked["unit"] = amounts(draw, contract)
    if draw(st.booleans()):
        asked["heldSince"] = draw(times(chain, end))
    return asked


def draw_nft(draw: Any, chain: int, end: int) -> dict[str, Any]:
    contract = draw(
        st.sampled_from(
            [one for one in CONTRACTS if one.chain_id == chain and one.standard != "ERC20"]
        )
    )
    asked: dict[str, Any] = {"nft": named(draw, contract)}
    if draw(st.booleans()):
        asked["count"] = draw(COUNTS)
    if draw(st.booleans()):
        ids = draw(st.sets(st.sampled_from(IDS), min_size=1))
        asked["tokenIds"] = [draw(st.sampled_from([one, str(one)])) for one in ids]
    if draw(st.booleans()):
        asked["heldSince"] = draw(times(chain, end))
    return asked


def draw_collections(draw: Any, chain: int, end: int) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"distinct": draw(COUNTS)}
    own = [one for one in CONTRACTS if one.chain_id == chain and one.standard != "ERC20"]
    some = draw(st.lists(st.sampled_from(own), min_size=1, unique_by=lambda one: one.contract))
    return {"of": [named(draw, one) for one in some], "atLeast": draw(st.integers(1, len(some)))}


def draw_transfer(draw: Any, chain: int, end: int) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "direction": draw(st.sampled_from(["in", "out", "any", "mint", "burn"]))
    }
    own = [one for one in CONTRACTS if one.chain_id == chain]
    if draw(st.booleans()):
        contract = draw(st.sampled_from(own))
        asked["token" if contract.standard == "ERC20" else "nft"] = named(draw, contract)
        for key in draw(st.sets(st.sampled_from(["amount", "total"]))):
            asked[key], _ = (
                amounts(draw, contract, moved=True)
                if contract.standard == "ERC20"
                else (draw(COUNTS), "")
            )
            if contract.standard == "ERC20":
                asked[key], asked["unit"] = draw(bounds(AMOUNTS)), "raw"
    if draw(st.booleans()):
        asked["count"] = draw(COUNTS)
    if draw(st.booleans()) and asked["direction"] not in ("mint", "burn"):
        others = draw(st.lists(st.sampled_from(WALLETS), min_size=1, max_size=3))
        asked["counterparty"] = draw(st.sampled_from([others, others[0]]))
    return {**asked, **(draw(windows(chain)) if draw(st.booleans()) else {})}


def draw_activity(draw: Any, chain: int, end: int) -> dict[str, Any]:
    asked = {
        "first": draw(windows(chain)),
        "last": draw(windows(chain)),
        "transfers": draw(COUNTS),
        "activeDays": draw(COUNTS),
    }
    return {key: asked[key] for key in draw(st.sets(st.sampled_from(sorted(asked)), min_size=1))}


def draw_wallet(draw: Any, chain: int, end: int) -> dict[str, Any]:
    among = draw(st.lists(st.sampled_from(WALLETS), min_size=1, max_size=4))
    one = draw(st.sampled_from([{"in": among}, {"list": draw(st.sampled_from(sorted(LISTS)))}]))
    asked = {**one, "contract": draw(st.booleans())}
    return {key: asked[key] for key in draw(st.sets(st.sampled_from(sorted(asked)), min_size=1))}
