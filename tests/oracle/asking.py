"""Questions of a world, drawn with every field of the language: a ``draw_NAME`` draws each condition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from random import Random
from typing import Any

from nbext.core.addresses import checksummed
from tests.oracle.meaning import columns_for, is_nft
from tests.oracle.world import World

# Where integers change their width: of floats, of 64 bits, of the layout's limbs, of the chain.
EDGES = [
    0,
    1,
    2,
    *(edge + step for edge in (10**17, 2**53, 2**63, 10**26) for step in (-1, 0, 1)),
    2**256 - 1,
]
COUNTS = [one for one in EDGES if one < 2**63]
FEW = [0, 1, 2, 3, 5]
IDS = [0, 1, 2**63, 10**26, 2**256 - 1]
ALIASES = {
    1: ["ethereum", "eth", 1, "eip155:1"],
    10: ["optimism", 10, "oeth"],
    8453: ["base", 8453],
}


class Asking:
    """Draws requests. ``drawn`` counts what was asked: (condition, field, standard), and pairs of fields."""

    def __init__(
        self,
        luck: Random,
        world: World,
        wallets: Sequence[str],
        saved: Sequence[str] = (),
        lists: Sequence[str] = (),
        drawn: Counter[tuple[str, ...]] | None = None,
    ) -> None:
        self.luck, self.world, self.wallets = luck, world, wallets
        self.saved, self.lists = saved, lists
        self.drawn = Counter() if drawn is None else drawn
        self.chains = sorted(world.last_blocks)
        self.begins = {chain: min(self.known(chain)) for chain in self.chains}
        self.ends = dict(world.last_blocks)
        self.default = self.chains[0]
        # Whether a time was asked for, which data without block times refuse.
        self.times = False

    def one_of(self, some: Sequence[Any]) -> Any:
        return self.luck.choice(list(some))

    def may(self, chances: int = 2) -> bool:
        return self.luck.randrange(chances) == 0

    def some(self, among: Sequence[Any], least: int = 1, most: int = 4) -> list[Any]:
        """Draw some of a list, each once."""
        many = self.luck.randint(least, most)
        return self.luck.sample(list(among), min(many, len(among)))

    def note(self, name: str, asked: dict[str, Any], contract: Any = None) -> dict[str, Any]:
        for key in asked:
            self.drawn[name, key, "" if contract is None else contract.standard] += 1
        for one, other in combinations(sorted(asked), 2):
            self.drawn["pair", name, one, other] += 1
        return asked

    # Whole requests

    def request(self) -> dict[str, Any]:
        scope: dict[str, Any] = {}
        if self.may(3):
            self.default = self.one_of(self.chains)
        if self.default != 1 or self.may(4):
            scope["chain"] = self.one_of(ALIASES[self.default])
        if self.may() and (at := self.as_of()) is not None:
            scope["asOf"] = at
        if self.may(3):
            scope["exclude"] = self.some(["burn", *self.wallets], 0, 2)
        members = self.members()
        if self.may(3):
            scope["columns"] = self.some(columns_for(members))
            self.times = True
        filters = {**members, **self.note("", scope)}
        operator = self.one_of(["AND", "OR"])
        return {"operator": operator, "filters": filters}

    def as_of(self) -> Any:
        """Draw a time at which every chain has begun, and set the blocks at which they are looked at."""
        if len(self.chains) == 1 and self.may():
            block = self.one_of(sorted(self.known(self.default)))
            self.ends[self.default] = block
            return block
        first = max(self.seconds(chain, self.begins[chain]) for chain in self.chains)
        last = min(self.seconds(chain, self.ends[chain]) for chain in self.chains)
        if first > last or not first:
            return None
        self.times = True
        at = self.luck.randint(first, last)
        written = datetime.fromtimestamp(at, UTC).isoformat()
        if self.may(3):
            written = written[:10]
            midnight = datetime.fromisoformat(written).replace(tzinfo=UTC)
            at = int((midnight + timedelta(days=1)).timestamp()) - 1
        for chain in self.chains:
            before = [one for one in self.known(chain) if self.seconds(chain, one) <= at]
            self.ends[chain] = max(before)
        return written

    def known(self, chain: int) -> list[int]:
        return [block for on, block in self.world.blocks if on == chain]

    def seconds(self, chain: int, block: int) -> int:
        return self.world.timestamp(chain, block) or 0

    def members(self, depth: int = 0) -> dict[str, Any]:
        """Draw a map of conditions and groups."""
        members: dict[str, Any] = {}
        for _ in range(self.luck.randint(1, 2)):
            group = self.one_of(["", "", "", "", "all", "any", "not", "not"]) if depth < 2 else ""
            if group:
                many = [self.members(depth + 1) for _ in range(self.luck.randint(1, 2))]
                members[group] = many[0] if group == "not" and len(many) == 1 else many
                self.drawn["", group, ""] += 1
                continue
            name, asked = self.condition()
            members[name] = [*members[name], asked] if name in members else [asked]
        return {
            key: many[0] if key not in ("all", "any", "not") and len(many) == 1 else many
            for key, many in members.items()
        }

    def condition(self) -> tuple[str, dict[str, Any]]:
        names = [name.removeprefix("draw_") for name in vars(Asking) if name.startswith("draw_")]
        name = self.one_of([one for one in names if one != "segment" or self.saved])
        chain = self.one_of([self.default, *self.chains])
        asked, contract = getattr(self, f"draw_{name}")(chain)
        if name not in ("wallet", "segment") and (chain != self.default or self.may(6)):
            asked["chain"] = self.one_of(ALIASES[chain])
        return name, self.note(name, asked, contract)

    # Conditions

    def draw_token(self, chain: int) -> tuple[dict[str, Any], Any]:
        contract = self.contract(chain, "ERC20")
        asked = {"token": self.named(contract)}
        if self.may():
            asked |= self.amounts("balance", contract)
        if self.may(3):
            asked["heldSince"] = self.since(chain)
        return asked, contract

    def draw_nft(self, chain: int) -> tuple[dict[str, Any], Any]:
        contract = self.contract(chain, "ERC721", "ERC1155")
        asked: dict[str, Any] = {"nft": self.named(contract)}
        if self.may():
            asked["count"] = self.bounds([*FEW, *COUNTS])
        if self.may():
            asked["tokenIds"] = [self.one_of([one, str(one)]) for one in self.some(IDS)]
        if self.may(3):
            asked["heldSince"] = self.since(chain)
        return asked, contract

    def draw_collections(self, chain: int) -> tuple[dict[str, Any], Any]:
        if self.may():
            return {"distinct": self.bounds(FEW)}, None
        own = [one for one in self.of_chain(chain) if is_nft(one)]
        if not own:
            return {"distinct": {"min": 1}}, None
        some = self.some(own)
        of = {"of": [self.named(one) for one in some]}
        return of | ({"atLeast": self.one_of(range(1, len(some) + 1))} if self.may() else {}), None

    def draw_transfer(self, chain: int) -> tuple[dict[str, Any], Any]:
        asked: dict[str, Any] = {}
        contract = None
        if self.may(3) is False:
            contract = self.one_of(self.of_chain(chain))
            asked["nft" if is_nft(contract) else "token"] = self.named(contract)
            for key in self.some(["amount", "total"], 0):
                asked |= (
                    {key: self.bounds(COUNTS, moved=True)}
                    if is_nft(contract)
                    else self.amounts(key, contract, moved=True, raw=True)
                )
        if self.may(3) is False:
            asked["direction"] = self.one_of(["in", "out", "any", "mint", "burn"])
        if self.may(3):
            asked["count"] = self.bounds(FEW)
        if self.may(3) and asked.get("direction") not in ("mint", "burn"):
            others = self.some(self.wallets)
            asked["counterparty"] = self.one_of([others, checksummed(others[0])])
        if self.may(3) or not asked:
            asked |= self.window(chain)
        return asked, contract

    def draw_activity(self, chain: int) -> tuple[dict[str, Any], Any]:
        asked: dict[str, Any] = {}
        for key in self.some(["first", "last", "transfers", "activeDays"]):
            asked[key] = self.window(chain) if key in ("first", "last") else self.bounds(FEW)
            self.times |= key == "activeDays"
        return asked, None

    def draw_wallet(self, chain: int) -> tuple[dict[str, Any], Any]:
        among = [*self.wallets, *self.saved]
        named: dict[str, Any] = {"in": self.some(among)}
        if self.lists and self.may(3):
            named = {"list": self.one_of(self.lists)}
        known = {"contract": self.may()}
        return self.one_of([named, known, {**named, **known}]), None

    def draw_segment(self, chain: int) -> tuple[dict[str, Any], Any]:
        return {"id": self.one_of(self.saved)}, None

    # Fields

    def of_chain(self, chain: int) -> list[Any]:
        return [one for one in self.world.contracts if one.chain_id == chain]

    def contract(self, chain: int, *standards: str) -> Any:
        return self.one_of([one for one in self.of_chain(chain) if one.standard in standards])

    def named(self, contract: Any) -> str:
        names = [contract.address, checksummed(contract.address)]
        return self.one_of(
            [*names, *([contract.symbol, contract.symbol.lower()] * 2 if contract.symbol else [])]
        )

    def bounds(
        self,
        values: Sequence[Any],
        show: Callable[[Any], Any] = lambda value: value,
        *,
        moved: bool = False,
    ) -> dict[str, Any]:
        """Draw min, max or both, in order; a max of 0 alone only of what was ``moved``."""
        low, high = sorted((self.one_of(values), self.one_of(values)))
        keys = self.one_of([["min"], ["max"], ["min", "max"]])
        if high == 0 and not moved:
            keys = ["min"]
        return {key: show({"min": low, "max": high}[key]) for key in keys}

    def amounts(
        self, name: str, contract: Any, *, moved: bool = False, raw: bool = False
    ) -> dict[str, Any]:
        """Draw bounds of an amount, in the smallest unit or in the token's own."""
        if raw or contract.decimals is None or self.may():
            return {name: self.bounds(EDGES, str, moved=moved), "unit": "raw"}

        def shown(value: int) -> str:
            places = contract.decimals
            text = str(value).rjust(places + 1, "0")
            whole, fraction = text[: len(text) - places], text[len(text) - places :].rstrip("0")
            return f"{whole}.{fraction}" if fraction else whole

        return {name: self.bounds(EDGES, shown, moved=moved)}

    def moment(self, chain: int, first: int, last: int) -> Any:
        """Draw a time between two blocks: a block, a time, or hours back from the last of the blocks asked of."""
        start, end = self.seconds(chain, first), self.seconds(chain, last)
        kind = self.one_of(["block", "time", "span"])
        if kind == "block" or not start:
            return self.luck.randint(first, last)
        self.times = True
        at = self.luck.randint(start, end)
        back = (self.seconds(chain, self.ends[chain]) - at) // 3600
        if kind == "span" and back:
            return f"{back}h"
        return datetime.fromtimestamp(at, UTC).isoformat()

    def since(self, chain: int) -> Any:
        return self.moment(chain, self.begins[chain], self.ends[chain])

    def window(self, chain: int) -> dict[str, Any]:
        """Draw a window that is not empty."""
        keys = self.one_of([["after"], ["before"], ["after", "before"]])
        both = (self.begins[chain], self.ends[chain])
        first, last = sorted((self.luck.randint(*both), self.luck.randint(*both)))
        given: dict[str, Any] = {"after": first, "before": last}
        if self.seconds(chain, 0) and self.may():
            self.times = True
            length, end = self.one_of([None, 10, 0]), self.seconds(chain, self.ends[chain])
            given = {
                # Hours back, or a time, or its day.
                key: f"{max((end - self.seconds(chain, block)) // 3600, 1)}h"
                if length == 0
                else datetime.fromtimestamp(self.seconds(chain, block), UTC).isoformat()[:length]
                for key, block in given.items()
            }
        return {key: given[key] for key in keys}
