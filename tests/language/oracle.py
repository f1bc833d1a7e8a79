"""What a segment means, answered the slow and plain way: Python integers over a list of transfers.

Each condition is a question about one wallet, answered by looking at every transfer and every block. It
shares no code with the language but the reading of a chain's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import chain, groupby
from typing import Any

from nbext.core.addresses import BURN_ADDRESSES
from nbext.core.chains import chain_of
from nbext.engine.dataset import Contract
from tests.language.tables import ZERO, Transfer, World

GROUPS = ("all", "any", "not")
NO_CHAIN = ("wallet",)
SCOPE = ("chain", "asOf", "exclude", "orderBy", "columns")


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
