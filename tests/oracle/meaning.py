"""What a segment means, from the reference page alone: Python's integers over a list of transfers, nothing prepared.

Each condition is a question about one wallet, answered by looking at every transfer and every block. It shares no code
with the language or the engine but the reading of a chain's name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nbext.core.chains import chain_of
from tests.oracle.world import BURNED, ZERO, Transfer, World

GROUPS = ("all", "any", "not")
NFTS = ("ERC721", "ERC1155")
NO_CHAIN = ("wallet",)
SCOPE = ("chain", "asOf", "exclude", "orderBy", "columns")
FACTS = ("firstSeen", "lastSeen", "transfers", "activeDays")
TRANSFERRED = ("transferred", "transferCount", "firstTransfer", "lastTransfer")
FIRST_LAST = {"first": min, "last": max}
SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


class NotKnown(Exception):
    """The data does not say: the service has to refuse the question."""


class Oracle:
    """Answers requests about a world. ``saved`` maps ids to requests, and ``lists`` to addresses."""

    def __init__(
        self,
        world: World,
        saved: Mapping[str, Any] | None = None,
        lists: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.world, self.saved, self.lists = world, saved or {}, lists or {}
        self.sides: dict[int, list[Transfer]] = defaultdict(list)
        for one in sorted(world.transfers, key=lambda one: (one.block, one.log_index)):
            self.sides[one.contract].append(one)
        self.openings = {
            one.contract: openings_of(
                one.standard, self.sides[one.contract], world.snapshots.get(one.contract)
            )
            for one in world.contracts
        }

    def wallets(self, request: Mapping[str, Any], as_of: Any = None) -> set[str]:
        """Return the addresses of a request."""
        return set(One(self, request, as_of).wallets())


class One:
    """One request, with its chain and its time."""

    def __init__(self, oracle: Oracle, request: Mapping[str, Any], as_of: Any = None) -> None:
        self.oracle, self.world, self.request = oracle, oracle.world, request
        self.filters = request["filters"]
        named = self.named(self.conditions)
        own = named[0] if named and 1 not in named else 1
        self.default = chain_of(self.filters.get("chain", own)).id
        self.as_of = None
        if "asOf" in self.filters:
            as_of = self.moment(self.filters["asOf"], self.default, ends=True)
        self.as_of = as_of

    # Who is in it

    def wallets(self) -> list[str]:
        """Return the addresses, in order."""
        excluded = {
            address.lower()
            for one in self.filters.get("exclude", ["burn"])
            for address in (BURNED if one == "burn" else [one])
        }
        # What the data does not say is refused, whoever is in it.
        self.children(self.conditions, ZERO)
        joined = all if self.request.get("operator", "AND") == "AND" else any
        return sorted(
            wallet
            for wallet in self.seen() - excluded
            if joined(self.children(self.conditions, wallet))
        )

    @property
    def conditions(self) -> dict[str, Any]:
        return {key: value for key, value in self.filters.items() if key not in SCOPE}

    def children(self, members: Mapping[str, Any], wallet: str) -> list[bool]:
        """Return whether each child holds of the wallet: every key is one, and a list under a key is several."""
        held: list[bool] = []
        for key, value in members.items():
            many = value if isinstance(value, list) else [value]
            inner = [all(self.children(one, wallet)) for one in many] if key in GROUPS else []
            if key == "all":
                held.append(all(inner))
            elif key == "any":
                held.append(any(inner))
            elif key == "not":
                held += [not one for one in inner]
            else:
                held += [getattr(self, key)(one, wallet) for one in many]
        return held

    def seen(self) -> set[str]:
        """Return who was seen on the segment's chains: in a transfer, a snapshot, or as an owner from the beginning."""
        return {
            wallet
            for chain in self.own_chains()
            for contract in self.of_chain(chain)
            for wallet in self.seen_with(contract, self.end(chain))
        }

    def seen_with(self, contract: Any, block: int) -> set[str]:
        found = {
            side
            for one in self.moves(contract)
            if one.block <= block
            for side in (one.sender, one.recipient)
        }
        named = {
            one.wallet
            for number, snapshot in self.world.named
            if number == contract.contract and snapshot.block <= block
            for one in snapshot.held
            if one.amount
        }
        begun = self.world.snapshots.get(contract.contract)
        if begun is not None and block < begun.block:
            return found | named
        return found | named | {wallet for wallet, _ in self.oracle.openings[contract.contract]}

    def own_chains(self) -> set[int]:
        return self.chains_of(self.conditions) or {self.default}

    def named(self, members: Mapping[str, Any]) -> list[int]:
        """Return the chain of each condition that has one, where the segment names none."""
        found: list[int] = []
        for key, value in members.items():
            for one in value if isinstance(value, list) else [value]:
                if key in GROUPS:
                    found += self.named(one)
                elif key == "segment":
                    found.append(One(self.oracle, self.oracle.saved[one["id"]]).default)
                elif key not in NO_CHAIN:
                    found.append(chain_of(one.get("chain", "ethereum")).id)
        return found

    def chains_of(self, members: Mapping[str, Any]) -> set[int]:
        found: set[int] = set()
        for key, value in members.items():
            for one in value if isinstance(value, list) else [value]:
                if key in GROUPS:
                    found |= self.chains_of(one)
                elif key == "segment":
                    found |= One(self.oracle, self.oracle.saved[one["id"]]).own_chains()
                elif key not in NO_CHAIN:
                    found.add(self.chain(one))
        return found

    # Conditions

    def token(self, asked: Mapping[str, Any], wallet: str) -> bool:
        contract = self.contract(asked["token"], self.chain(asked))
        bounds = self.raw(asked, "balance", contract)
        return self.holds(asked, contract, bounds, lambda at: self.balance(contract, wallet, at))

    def nft(self, asked: Mapping[str, Any], wallet: str) -> bool:
        contract = self.contract(asked["nft"], self.chain(asked))
        ids = {int(one) for one in asked["tokenIds"]} if "tokenIds" in asked else None
        bounds = asked.get("count", {})
        return self.holds(asked, contract, bounds, lambda at: self.owned(contract, wallet, at, ids))

    def holds(
        self, asked: Any, contract: Any, bounds: Mapping[str, int], amount: Callable[[int], int]
    ) -> bool:
        chain = contract.chain_id
        end = self.end(chain)
        since = end
        if "heldSince" in asked:
            since = self.block_of(self.moment(asked["heldSince"], chain), chain)
        self.since_begun(contract, min(since, end))
        least = bounds.get("min", 1)
        return within(amount(end), bounds) and all(
            amount(block) >= least for block in range(since, end)
        )

    def collections(self, asked: Mapping[str, Any], wallet: str) -> bool:
        chain = self.chain(asked)
        bounds = asked.get("distinct", {"min": asked.get("atLeast", 1)})
        if "of" in asked:
            some = [self.contract(one, chain) for one in asked["of"]]
        else:
            some = [one for one in self.of_chain(chain) if is_nft(one)]
        return within(sum(self.owned(one, wallet, self.end(chain)) > 0 for one in some), bounds)

    def transfer(self, asked: Mapping[str, Any], wallet: str) -> bool:
        contract, fitting = self.fitting(asked, wallet)
        count, total = asked.get("count", {}), self.raw(asked, "total", contract)
        if not fitting:
            return wants_none(count, total)
        moved = sum(amount_of(one, contract) for one in fitting)
        return within(len(fitting), count) and within(moved, {"min": 0, **total})

    def fitting(self, asked: Mapping[str, Any], wallet: str) -> tuple[Any, list[Transfer]]:
        """Return the contract of a transfer condition, or None, and the transfers of a wallet that fit it."""
        chain = self.chain(asked)
        name = asked.get("token", asked.get("nft"))
        contract = None if name is None else self.contract(name, chain)
        some = self.of_chain(chain) if contract is None else [contract]
        return contract, [
            one
            for of in some
            for one in self.moves(of)
            if self.fits(one, asked, wallet, contract, chain)
        ]

    def fits(self, one: Transfer, asked: Any, wallet: str, contract: Any, chain: int) -> bool:
        came, went = one.recipient == wallet, one.sender == wallet
        in_it = {
            "in": came,
            "out": went,
            "any": came or went,
            "mint": came and one.sender == ZERO,
            "burn": went and one.recipient in BURNED,
        }
        direction = asked.get("direction", "any")
        others = {
            *([one.sender] if came and direction != "out" else []),
            *([one.recipient] if went and direction != "in" else []),
        }
        wanted = asked.get("counterparty", sorted(others))
        wanted = {each.lower() for each in ([wanted] if isinstance(wanted, str) else wanted)}
        return (
            in_it[direction]
            and bool(others & wanted)
            and one.block <= self.end(chain)
            and self.inside(one.block, asked, chain)
            and within(amount_of(one, contract), {"min": 0, **self.raw(asked, "amount", contract)})
        )

    def activity(self, asked: Mapping[str, Any], wallet: str) -> bool:
        chain = self.chain(asked)
        moved = self.moved_in(chain, wallet)
        stood = [*moved, *self.named_in(chain, wallet)]
        numbers = {"transfers": len(moved), "activeDays": len(self.days(chain, moved))}
        counts = [(number, asked[name]) for name, number in numbers.items() if name in asked]
        windows = [(pick, asked[name]) for name, pick in FIRST_LAST.items() if name in asked]
        if not moved and counts and not wants_none(*(bounds for _, bounds in counts)):
            return False
        return (
            (bool(stood) or not windows)
            and all(within(number, {"min": 0, **bounds}) for number, bounds in counts)
            and all(self.inside(pick(stood), window, chain) for pick, window in windows)
        )

    def moved_in(self, chain: int, wallet: str) -> list[int]:
        """Return the blocks of a wallet's transfers on a chain, one for each."""
        return [
            one.block
            for contract in self.of_chain(chain)
            for one in self.moves(contract)
            if wallet in (one.sender, one.recipient) and one.block <= self.end(chain)
        ]

    def named_in(self, chain: int, wallet: str) -> list[int]:
        """Return the blocks of the snapshots that name a wallet."""
        contracts = {one.contract for one in self.of_chain(chain)}
        return [
            snapshot.block
            for number, snapshot in self.world.named
            if number in contracts and snapshot.block <= self.end(chain)
            if any(one.wallet == wallet and one.amount for one in snapshot.held)
        ]

    def days(self, chain: int, blocks: Iterable[int]) -> set[int]:
        return {(self.world.timestamp(chain, block) or 0) // 86_400 for block in blocks}

    def wallet(self, asked: Mapping[str, Any], wallet: str) -> bool:
        named = asked.get("in", [wallet])
        among: set[str] = set()
        for one in [named] if isinstance(named, str) else named:
            saved = self.oracle.saved.get(one)
            among |= {one.lower()} if saved is None else self.oracle.wallets(saved, self.as_of)
        return (
            wallet in among
            and ("list" not in asked or wallet in self.oracle.lists[asked["list"]])
            and asked.get("contract") in (None, wallet in self.world.contract_wallets)
        )

    def segment(self, asked: Mapping[str, Any], wallet: str) -> bool:
        return wallet in self.oracle.wallets(self.oracle.saved[asked["id"]], self.as_of)

    # What a wallet had

    def balance(self, contract: Any, wallet: str, block: int) -> int:
        """Return how much a wallet holds at the end of a block, in the smallest unit; of NFTs how many."""
        if is_nft(contract):
            return self.owned(contract, wallet, block)
        begun, moves = self.since_begun(contract, block)
        return sum(one.amount for one in begun if one.wallet == wallet) + sum(
            one.amount * ((one.recipient == wallet) - (one.sender == wallet)) for one in moves
        )

    def ever_below_zero(self, contract: Any) -> bool:
        """Say whether a wallet has less than nothing of a contract at the end of some block, as none can."""
        moves = [] if is_nft(contract) else self.moves(contract)
        return any(
            self.balance(contract, one.sender, one.block) < 0 for one in moves if one.sender != ZERO
        )

    def owned(
        self, contract: Any, wallet: str, block: int, ids: Iterable[int] | None = None
    ) -> int:
        """Return how many NFTs a wallet owns at the end of a block, of some token ids or of all."""
        begun, moves = self.since_begun(contract, block)
        owned: dict[tuple[str, int], int] = defaultdict(
            int, self.oracle.openings[contract.contract]
        )
        for one in begun:
            owned[one.wallet, one.token_id] += one.amount
        owner = {token_id: who for (who, token_id), many in owned.items() if many}
        for one in moves:
            if contract.standard == "ERC1155" and one.sender == one.recipient:
                continue
            if contract.standard == "ERC1155":
                # A mint takes from nobody: the zero address has what was burned.
                owned[one.sender, one.amount] -= one.count * (one.sender != ZERO)
                owned[one.recipient, one.amount] += one.count
            else:
                if one.amount in owner:
                    owned[owner[one.amount], one.amount] -= 1
                owned[one.recipient, one.amount] += 1
                owner[one.amount] = one.recipient
        return sum(
            many
            for (who, token_id), many in owned.items()
            if who == wallet and (ids is None or token_id in ids)
        )

    def since_begun(self, contract: Any, block: int) -> tuple[Sequence[Any], list[Transfer]]:
        """Return what a contract's balances begin with, and the transfers since then, up to a block."""
        moves = [one for one in self.moves(contract) if one.block <= block]
        begun = self.world.snapshots.get(contract.contract)
        if begun is None:
            return (), moves
        if block < begun.block:
            raise NotKnown(f"{contract.symbol} begins at block {begun.block}")
        return begun.held, [one for one in moves if one.block > begun.block]

    # Names and times

    def of_chain(self, chain: int) -> list[Any]:
        return [one for one in self.world.contracts if one.chain_id == chain]

    def moves(self, contract: Any) -> list[Transfer]:
        """Return a contract's transfers, in the chain's order."""
        return self.oracle.sides[contract.contract]

    def chain(self, asked: Mapping[str, Any]) -> int:
        return chain_of(asked["chain"]).id if "chain" in asked else self.default

    def contract(self, name: str, chain: int) -> Any:
        (found,) = (
            one
            for one in self.of_chain(chain)
            if name.lower() in (one.address, (one.symbol or "").lower())
        )
        return found

    def raw(self, asked: Mapping[str, Any], key: str, contract: Any) -> dict[str, int]:
        """Return bounds in the smallest unit; those of NFTs are counts."""
        in_tokens = contract is not None and not is_nft(contract) and asked.get("unit") != "raw"
        places = (contract.decimals or 0) if in_tokens else 0
        return {name: scaled(str(bound), places) for name, bound in asked.get(key, {}).items()}

    def moment(self, written: Any, chain: int, *, ends: bool = False) -> tuple[Any, ...]:
        """Return a time as ("block", n, chain) or ("time", seconds); a date that ``ends`` is its last second."""
        if isinstance(written, int):
            return ("block", written, chain)
        if written[-1] in SECONDS and written[:-1].isdigit():
            # As if the data ended there: from the last block of it.
            end = self.end(chain)
            known = [block for on, block in self.world.blocks if on == chain and block <= end]
            last = self.time(chain, max(known, default=end))
            return ("time", last - int(written[:-1]) * SECONDS[written[-1]])
        read = datetime.fromisoformat(written)
        seconds = int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())
        return ("time", seconds + 86_399 * (ends and len(written) == 10))

    def time(self, chain: int, block: int) -> int:
        known = self.world.timestamp(chain, block)
        if known is None:
            raise NotKnown(f"chain {chain} has no times")
        return known

    def block_of(self, moment: Any, chain: int) -> int:
        """Return the last block at or before a moment; -1 before the first."""
        if moment[0] == "block" and moment[2] == chain:
            return moment[1]
        seconds = moment[1] if moment[0] == "time" else self.time(moment[2], moment[1])
        blocks = range(self.world.last_blocks[chain] + 1)
        return max((one for one in blocks if self.time(chain, one) <= seconds), default=-1)

    def end(self, chain: int) -> int:
        """Return the block at whose end a chain is looked at."""
        last = self.world.last_blocks[chain]
        return last if self.as_of is None else self.block_of(self.as_of, chain)

    def inside(self, block: int, window: Mapping[str, Any], chain: int) -> bool:
        """Say whether a block lies in a window, bounds included."""
        for key, wrong in (("after", -1), ("before", 1)):
            if key in window:
                moment = self.moment(window[key], chain, ends=key == "before")
                here = block if moment[0] == "block" else self.time(chain, block)
                if (here > moment[1]) - (here < moment[1]) == wrong:
                    return False
        return True

    # Rows

    def rows(self, columns: Sequence[Mapping[str, Any]], limit: int) -> list[dict[str, Any]]:
        """Return the first rows, in order: each column of an answer for each wallet."""
        rows = [
            {one["name"]: self.cell(one, wallet) for one in columns} for wallet in self.wallets()
        ]
        written = self.filters.get("orderBy", "address")
        name, falling = written.removeprefix("-"), written.startswith("-")
        if name == "amount":
            (name,) = {one["name"].removesuffix("_raw") for one in columns if is_amount(one)}
        by = next(one for one in columns if one["name"] in (name, f"{name}_raw"))
        # Amounts that differ may be equal as floats, or have no share.
        exact = {**by, "type": "exact", "unit": "raw"}
        keys = {row["address"]: self.cell(exact, row["address"]) for row in rows}
        known = [row for row in rows if keys[row["address"]] is not None]
        # The rows are in order of addresses, and sorting leaves equals as they are, also backwards.
        known.sort(key=lambda row: keys[row["address"]], reverse=falling)
        return [*known, *(row for row in rows if keys[row["address"]] is None)][:limit]

    def cell(self, column: Mapping[str, Any], wallet: str) -> Any:
        name = column["name"]
        if name == "address":
            return wallet
        if "address" in column or name.removesuffix("_raw") in TRANSFERRED:
            return (self.held if "address" in column else self.transferred)(column, wallet)
        chain = chain_of(column["chain"]).id
        moved = self.moved_in(chain, wallet)
        if name == "transfers":
            return len(moved)
        stood = [*moved, *self.named_in(chain, wallet)]
        if not stood:
            return None
        if name == "activeDays":
            return len(self.days(chain, moved))
        return self.at(chain, (min if name == "firstSeen" else max)(stood))

    def at(self, chain: int, block: int) -> datetime | None:
        """Return the time of a block as a column has it: missing where the data has none."""
        if (chain, block) in self.world.untimed:
            return None
        return datetime.fromtimestamp(self.time(chain, block), UTC)

    def held(self, column: Mapping[str, Any], wallet: str) -> Any:
        """Return a column of a balance: exact, in the token's unit, or as a share of the supply."""
        chain = chain_of(column["chain"]).id
        contract = self.contract(column["address"], chain)
        held = self.balance(contract, wallet, self.end(chain))
        # Python divides integers with one rounding, as each of these floats must be.
        if column.get("unit") == "share":
            supply = self.supply(contract)
            return held / supply if supply else None
        return held / 10 ** column["decimals"] if column["type"] == "float64" else held

    def transferred(self, column: Mapping[str, Any], wallet: str) -> Any:
        """Return a column of the one transfer condition that holds of the wallets."""
        (asked,) = positive(self.conditions, ("transfer",))
        contract, fitting = self.fitting(asked, wallet)
        if column["name"] == "transferCount":
            return len(fitting)
        if "symbol" in column:
            moved = sum(amount_of(one, contract) for one in fitting)
            return moved / 10 ** column["decimals"] if column["type"] == "float64" else moved
        blocks = [one.block for one in fitting]
        if not blocks:
            return None
        return self.at(
            self.chain(asked), (min if column["name"] == "firstTransfer" else max)(blocks)
        )

    def supply(self, contract: Any) -> int | None:
        """Return the supply at the segment's time: as it is stated, and before, where the data has all of it now."""
        last, end = self.world.last_blocks[contract.chain_id], self.end(contract.chain_id)
        wallets = [one for one in self.world.addresses if one != ZERO]
        now, then = (
            sum(self.balance(contract, wallet, block) for wallet in wallets)
            for block in (last, end)
        )
        stated = getattr(contract, "total_supply", None)
        if stated is None or (now > stated if end == last else now != stated):
            return None
        return stated if end == last else max(then, 0)


def is_amount(column: Mapping[str, Any]) -> bool:
    return "symbol" in column and column.get("unit") != "share"


def positive(members: Mapping[str, Any], names: Sequence[str], held: bool = True) -> list[Any]:
    """Return the conditions of some names that hold of the wallets: those under no ``not``, or under two."""
    found = []
    for key, value in members.items():
        for one in value if isinstance(value, list) else [value]:
            if key in GROUPS:
                found += positive(one, names, held is not (key == "not"))
            elif key in names and held:
                found.append(one)
    return found


def columns_for(members: Mapping[str, Any]) -> list[str]:
    """Return what ``columns`` may name beside some conditions."""
    moved = positive(members, ("transfer",))
    found = [*FACTS, *["share"] * bool(positive(members, ("token", "nft")))]
    if len(moved) != 1:
        return found
    return [*found, *TRANSFERRED[0 if {"token", "nft"} & moved[0].keys() else 1 :]]


def is_nft(contract: Any) -> bool:
    return contract.standard in NFTS


def openings_of(
    standard: str | None, moves: Sequence[Transfer], begun: Any
) -> dict[tuple[str, int], int]:
    """Return what wallets had of each id before the data began: what they send beyond what came to them."""
    if standard not in NFTS:
        return {}
    had: dict[tuple[str, int], int] = defaultdict(int)
    needed: dict[tuple[str, int], int] = defaultdict(int)
    known: set[int] = set()
    if begun is not None:
        moves = [one for one in moves if one.block > begun.block]
        known = {one.token_id for one in begun.held}
        for row in begun.held:
            had[row.wallet, row.token_id] += row.amount
    for one in moves:
        source, target = (one.sender, one.amount), (one.recipient, one.amount)
        if standard == "ERC721":
            if one.amount not in known and one.sender != ZERO:
                needed[source] = 1
            known.add(one.amount)
            continue
        had[source] -= one.count
        if one.sender != ZERO:
            needed[source] = max(needed[source], -had[source])
        had[target] += one.count
    return {key: many for key, many in needed.items() if many > 0}


def amount_of(one: Transfer, contract: Any) -> int:
    """Return what a transfer moved: its amount, or how many NFTs."""
    return one.count if contract is not None and is_nft(contract) else one.amount


def within(number: int, bounds: Mapping[str, int]) -> bool:
    return bounds.get("min", 1) <= number <= bounds.get("max", number)


def wants_none(*bounds: Mapping[str, int]) -> bool:
    """Say whether bounds take wallets with nothing: one has an explicit min of 0, and none a higher one."""
    lows = [one["min"] for one in bounds if "min" in one]
    return 0 in lows and not any(lows)


def scaled(text: str, places: int) -> int:
    whole, _, fraction = text.partition(".")
    assert len(fraction) <= places
    return int(whole + fraction.ljust(places, "0"))
