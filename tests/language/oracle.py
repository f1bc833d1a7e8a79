"""What a segment means, the slow and plain way: Python integers over a list of transfers; and random conditions.

Each condition is a question about one wallet, answered by looking at every transfer and every block. It
shares no code with the language but the reading of a chain's name. Below, a ``draw_NAME`` draws each condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any

import hypothesis.strategies as st

from nbext.core.addresses import BURN_ADDRESSES, checksummed
from nbext.core.chains import chain_of
from nbext.core.times import iso
from nbext.engine.dataset import Contract
from nbext.language.conditions import CONDITIONS
from tests.language.tables import GENESIS, ZERO, Transfer, World, stored_list

GROUPS = ("all", "any", "not")
NO_CHAIN = ("wallet",)
SCOPE = ("chain", "asOf", "exclude", "orderBy", "columns")

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


class Oracle:
    """Answers requests about a world. ``saved`` maps ids to requests, and ``lists`` to addresses."""

    def __init__(
        self,
        world: World,
        saved: Mapping[str, Any] | None = None,
        lists: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.world = world
        self.saved, self.lists = saved or {}, lists or {}

    def wallets(self, request: Mapping[str, Any], as_of: Any = None) -> set[str]:
        """Return the addresses of a request."""
        return set(One(self, request, as_of).wallets())


class One:
    """One request, with its chain and its time."""

    def __init__(self, oracle: Oracle, request: Mapping[str, Any], as_of: Any = None) -> None:
        self.oracle, self.world, self.request = oracle, oracle.world, request
        self.filters = request["filters"]
        self.default = chain_of(self.filters.get("chain", "ethereum")).id
        self.as_of = (
            self.moment(self.filters["asOf"], ends=True) if "asOf" in self.filters else as_of
        )

    def wallets(self) -> list[str]:
        excluded = {
            address.lower()
            for one in self.filters.get("exclude", ["burn"])
            for address in (BURN_ADDRESSES if one == "burn" else [one])
        }
        conditions = {key: value for key, value in self.filters.items() if key not in SCOPE}
        quantifier = all if self.request.get("operator", "AND") == "AND" else any
        return sorted(
            wallet
            for wallet in self.seen(conditions) - excluded
            if quantifier(self.members(conditions, wallet))
        )

    def rows(self, columns: list[Mapping[str, Any]], limit: int) -> list[dict[str, Any]]:
        """Return the first rows, in order: each column of an answer for each wallet."""
        rows = [
            {one["name"]: self.cell(one, wallet) for one in columns} for wallet in self.wallets()
        ]
        written = self.filters.get("orderBy", "address")
        name, falling = written.removeprefix("-"), written.startswith("-")
        # Floats of amounts that differ may be equal.
        name = f"{name}_raw" if any(column["name"] == f"{name}_raw" for column in columns) else name
        known = sorted(
            (row for row in rows if row[name] is not None),
            key=lambda row: row[name],
            reverse=falling,
        )
        groups = [
            sorted(same, key=lambda row: row["address"])
            for _, same in groupby(known, key=lambda row: row[name])
        ]
        return [*chain.from_iterable(groups), *(row for row in rows if row[name] is None)][:limit]

    def cell(self, column: Mapping[str, Any], wallet: str) -> Any:
        if column["name"] == "address":
            return wallet
        number = chain_of(column["chain"]).id
        if "address" in column:
            held = self.balance(self.contract(column["address"], number), wallet, self.end(number))
            # Python divides integers with one rounding, as an amount in its token's unit must be.
            return held / 10 ** column["decimals"] if column["type"] == "float64" else held
        blocks = [
            one.block
            for one in self.on(number)
            if wallet in (one.sender, one.recipient) and one.block <= self.end(number)
        ]
        if column["name"] == "transfers" or not blocks:
            return len(blocks) if column["name"] == "transfers" else None
        times = [self.world.timestamp(number, block) for block in blocks]
        if column["name"] == "activeDays":
            return len({time // 86_400 for time in times})
        return datetime.fromtimestamp((min if column["name"] == "firstSeen" else max)(times), UTC)

    def seen(self, conditions: Mapping[str, Any]) -> set[str]:
        """Return the wallets with a transfer on the segment's chains, or with an NFT from the beginning."""
        return {
            side
            for chain in self.own_chains(conditions)
            for one in self.on(chain)
            if one.block <= self.end(chain)
            for side in (one.sender, one.recipient)
        } | {
            wallet
            for chain in self.own_chains(conditions)
            for contract in self.world.contracts
            if contract.chain_id == chain and contract.standard == "ERC721"
            for wallet in {one.sender for one in self.on(chain, contract)}
            if self.owned(contract, wallet, 0, None)
        }

    def own_chains(self, conditions: Mapping[str, Any]) -> set[int]:
        chains = self.chains(conditions)
        return chains or {self.default}

    def chains(self, members: Any) -> set[int]:
        found: set[int] = set()
        for key, value in members.items():
            for one in value if isinstance(value, list) else [value]:
                if key in GROUPS:
                    found |= self.chains(one)
                elif key == "segment":
                    inner = One(self.oracle, self.oracle.saved[one["id"]])
                    found |= inner.own_chains(
                        {k: v for k, v in inner.filters.items() if k not in SCOPE}
                    )
                elif key not in NO_CHAIN:
                    found.add(self.chain(one))
        return found

    def members(self, conditions: Mapping[str, Any], wallet: str) -> list[bool]:
        """Return whether each child holds of the wallet."""
        held: list[bool] = []
        for key, value in conditions.items():
            many = value if isinstance(value, list) else [value]
            if key == "all":
                held.append(all(all(self.members(one, wallet)) for one in many))
            elif key == "any":
                held.append(any(all(self.members(one, wallet)) for one in many))
            elif key == "not":
                held += [not all(self.members(one, wallet)) for one in many]
            else:
                held += [getattr(self, key)(one, wallet) for one in many]
        return held

    # Conditions

    def token(self, asked: Mapping[str, Any], wallet: str) -> bool:
        contract = self.contract(asked["token"], self.chain(asked))
        bounds = self.raw(asked, "balance", contract)
        return self.holds(
            asked, contract, bounds, lambda block: self.balance(contract, wallet, block)
        )

    def nft(self, asked: Mapping[str, Any], wallet: str) -> bool:
        contract = self.contract(asked["nft"], self.chain(asked))
        ids = [int(one) for one in asked["tokenIds"]] if "tokenIds" in asked else None
        return self.holds(
            asked,
            contract,
            asked.get("count", {}),
            lambda block: self.owned(contract, wallet, block, ids),
        )

    def holds(
        self, asked: Any, contract: Contract, bounds: Any, balance: Callable[[int], int]
    ) -> bool:
        low, high = bounds.get("min", 1), bounds.get("max", balance(self.end(contract.chain_id)))
        if not low <= balance(self.end(contract.chain_id)) <= high:
            return False
        if "heldSince" not in asked:
            return True
        since = self.last_block(
            self.moment(asked["heldSince"], contract.chain_id), contract.chain_id
        )
        return all(balance(block) >= low for block in range(since, self.end(contract.chain_id) + 1))

    def collections(self, asked: Mapping[str, Any], wallet: str) -> bool:
        chain = self.chain(asked)
        nfts = [
            one for one in self.world.contracts if one.chain_id == chain and one.standard != "ERC20"
        ]
        if "of" in asked:
            nfts = [self.contract(one, chain) for one in asked["of"]]
        number = sum(self.balance(one, wallet, self.end(chain)) > 0 for one in nfts)
        return within(
            number, asked["distinct"] if "distinct" in asked else {"min": asked.get("atLeast", 1)}
        )

    def transfer(self, asked: Mapping[str, Any], wallet: str) -> bool:
        chain = self.chain(asked)
        contract = next(
            (self.contract(asked[key], chain) for key in ("token", "nft") if key in asked), None
        )
        fits = [
            one
            for one in self.on(chain, contract)
            if self.fits(one, asked, wallet, contract, chain)
        ]
        count, total = asked.get("count", {}), self.raw(asked, "total", contract)
        mins = [one["min"] for one in (count, total) if "min" in one]
        if not fits:
            return 0 in mins and not any(mins)
        return within(len(fits), count) and within(
            sum(moved(one, contract) for one in fits), {"min": 0, **total}
        )

    def fits(
        self, one: Transfer, asked: Any, wallet: str, contract: Contract | None, chain: int
    ) -> bool:
        came, went = one.recipient == wallet, one.sender == wallet
        others = ([one.sender] if came else []) + ([one.recipient] if went else [])
        direction = asked.get("direction", "any")
        right = {
            "in": came,
            "out": went,
            "any": came or went,
            "mint": came and one.sender == ZERO,
            "burn": went and one.recipient in BURN_ADDRESSES,
        }[direction]
        if direction in ("in", "out"):
            others = [one.sender if direction == "in" else one.recipient]
        wanted = asked.get("counterparty", others)
        wanted = [wanted] if isinstance(wanted, str) else wanted
        return (
            right
            and any(other in [address.lower() for address in wanted] for other in others)
            and self.inside(one.block, asked, chain)
            and one.block <= self.end(chain)
            and within(moved(one, contract), {"min": 0, **self.raw(asked, "amount", contract)})
        )

    def activity(self, asked: Mapping[str, Any], wallet: str) -> bool:
        chain = self.chain(asked)
        own = [
            one
            for one in self.on(chain)
            if wallet in (one.sender, one.recipient) and one.block <= self.end(chain)
        ]
        mins = [
            asked[key]["min"] for key in ("transfers", "activeDays") if "min" in asked.get(key, {})
        ]
        if not own:
            return 0 in mins and not any(mins) and "first" not in asked and "last" not in asked
        blocks = [one.block for one in own]
        days = {(self.world.timestamp(chain, block) or 0) // 86_400 for block in blocks}
        return (
            self.inside(min(blocks), asked.get("first", {}), chain)
            and self.inside(max(blocks), asked.get("last", {}), chain)
            and within(len(own), asked.get("transfers", {}))
            and within(len(days), asked.get("activeDays", {}))
        )

    def wallet(self, asked: Mapping[str, Any], wallet: str) -> bool:
        known = wallet in self.world.contract_wallets
        listed = asked.get("in") or self.oracle.lists.get(asked.get("list"))
        return (not listed or wallet in [one.lower() for one in listed]) and (
            "contract" not in asked or known == asked["contract"]
        )

    def segment(self, asked: Mapping[str, Any], wallet: str) -> bool:
        return wallet in self.oracle.wallets(self.oracle.saved[asked["id"]], self.as_of)

    # What a wallet had

    def balance(self, contract: Contract, wallet: str, block: int) -> int:
        if contract.standard != "ERC20":
            return self.owned(contract, wallet, block, None)
        own = [one for one in self.on(contract.chain_id, contract) if one.block <= block]
        return sum(one.amount * ((one.recipient == wallet) - (one.sender == wallet)) for one in own)

    def owned(self, contract: Contract, wallet: str, block: int, ids: list[int] | None) -> int:
        own = [
            one for one in self.on(contract.chain_id, contract) if ids is None or one.amount in ids
        ]
        if contract.standard == "ERC1155":
            known = [one for one in own if one.block <= block]
            return sum(
                one.count * ((one.recipient == wallet) - (one.sender == wallet)) for one in known
            )
        return sum(
            self.owner([one for one in own if one.amount == number], block) == wallet
            for number in {one.amount for one in own}
        )

    def owner(self, moves: list[Transfer], block: int) -> str | None:
        """Return who had a token id: the last recipient, or the sender of its first transfer, if that is to come."""
        moves = sorted(moves, key=lambda one: (one.block, one.log_index))
        before = [one.recipient for one in moves if one.block <= block]
        return before[-1] if before else None if moves[0].sender == ZERO else moves[0].sender

    # Names

    def on(self, chain: int, contract: Contract | None = None) -> list[Transfer]:
        numbers = [
            one.contract
            for one in self.world.contracts
            if one.chain_id == chain and contract in (None, one)
        ]
        return [one for one in self.world.transfers if one.contract in numbers]

    def chain(self, asked: Mapping[str, Any]) -> int:
        return chain_of(asked["chain"]).id if "chain" in asked else self.default

    def contract(self, name: str, chain: int) -> Contract:
        (found,) = (
            one
            for one in self.world.contracts
            if one.chain_id == chain and name.lower() in (one.address, one.symbol.lower())
        )
        return found

    def raw(self, asked: Mapping[str, Any], key: str, contract: Contract | None) -> dict[str, int]:
        token = (
            asked.get("unit", "token") == "token"
            and contract is not None
            and contract.standard == "ERC20"
        )
        places = (contract.decimals or 0) if token and contract else 0
        return {name: scaled(str(bound), places) for name, bound in asked.get(key, {}).items()}

    def moment(self, written: Any, chain: int | None = None, *, ends: bool = False) -> Any:
        """Return a time as ("block", n) or ("time", seconds); a date that ``ends`` something is its last second."""
        chain = self.default if chain is None else chain
        if isinstance(written, int):
            return ("block", written, chain)
        if written[-1] in "hdw" and written[:-1].isdigit():
            unit = {"h": 3600, "d": 86_400, "w": 604_800}[written[-1]]
            last = self.world.timestamp(chain, self.world.last_blocks[chain]) or 0
            return ("time", last - int(written[:-1]) * unit)
        if len(written) == 10:
            midnight = int(datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp())
            return ("time", midnight + 86_399 * ends)
        return ("time", int(datetime.fromisoformat(written).timestamp()))

    def last_block(self, moment: Any, chain: int) -> int:
        """Return the last block at or before a moment."""
        if moment[0] == "block" and moment[2] == chain:
            return moment[1]
        seconds = moment[1] if moment[0] == "time" else self.world.timestamp(moment[2], moment[1])
        blocks = range(self.world.last_blocks[chain] + 1)
        return max(
            (b for b in blocks if (self.world.timestamp(chain, b) or 0) <= seconds), default=-1
        )

    def end(self, chain: int) -> int:
        return (
            self.world.last_blocks[chain]
            if self.as_of is None
            else self.last_block(self.as_of, chain)
        )

    def inside(self, block: int, span: Mapping[str, Any], chain: int) -> bool:
        """Say whether a block lies in a window of blocks or times, bounds included."""
        for key, wrong in (("after", -1), ("before", 1)):
            if key in span:
                moment = self.moment(span[key], chain, ends=key == "before")
                here = block if moment[0] == "block" else self.world.timestamp(chain, block) or 0
                if (here > moment[1]) - (here < moment[1]) == wrong:
                    return False
        return True


def within(number: int, bounds: Mapping[str, int]) -> bool:
    return bounds.get("min", 1) <= number <= bounds.get("max", number)


def moved(one: Transfer, contract: Contract | None) -> int:
    """Return what a transfer moved: its amount, or how many NFTs."""
    return one.count if contract is not None and contract.standard != "ERC20" else one.amount


def scaled(text: str, places: int) -> int:
    whole, _, fraction = text.partition(".")
    assert len(fraction) <= places
    return int(whole + fraction.ljust(places, "0"))


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
    """Draw a time within the data: a block, a time of or between blocks, hours back from the end."""
    step, end = SECONDS[chain], LAST[chain]
    last = end if last is None else last
    return st.one_of(
        st.integers(0, last),
        st.integers(0, last * step).map(lambda seconds: iso(GENESIS + seconds)),
        st.integers(-(-(end - last) * step // 3600), end * step // 3600).map(
            lambda hours: f"{hours}h"
        ),
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
