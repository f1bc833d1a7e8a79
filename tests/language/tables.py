"""A small chain as Python lists, and the layout's tables made of it: for tests of the language and of engines."""

from __future__ import annotations

import atexit
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from nbext.core.addresses import list_id
from nbext.core.uint256 import split
from nbext.engine.catalog import Catalog, Moment
from nbext.engine.dataset import Cancel, ChainExtent, Contract, DataAbout
from nbext.engine.duckdb.dataset import CursorEngine
from nbext.engine.query.amounts import sort_key
from nbext.engine.query.answers import Dataset, Engine
from nbext.engine.query.set_tree import WalletList
from nbext.engine.schema import FOREVER, TABLES
from tests.oracle.meaning import openings_of
from tests.oracle.world import GENESIS, ZERO, Transfer, World


def sided(standard: str | None, transfers: list[Transfer]) -> dict[str, list[tuple[int, int]]]:
    """Return each wallet's changes of balance, as (block, change), in order: one contract's transfers."""
    changes: dict[str, list[tuple[int, int]]] = defaultdict(list)
    owners: dict[int, str | None] = {}
    ordered = sorted(transfers, key=lambda one: (one.block, one.log_index))
    if standard == "ERC1155":
        for (wallet, _), many in openings_of(standard, ordered, None).items():
            changes[wallet].append((0, many))
    for one in ordered:
        moved = one.count if standard == "ERC1155" else 1 if standard == "ERC721" else one.amount
        loser: str | None = one.sender
        if standard == "ERC1155" and one.sender == ZERO:
            # A mint takes from nobody.
            loser, moved = None, moved * (one.recipient != ZERO)
        if standard == "ERC721":
            if one.amount not in owners and one.sender != ZERO:
                # Who sends an id that was never seen had it from the beginning.
                changes[one.sender].append((0, 1))
                owners[one.amount] = one.sender
            loser = owners.get(one.amount)
            owners[one.amount] = one.recipient
        if loser is not None:
            changes[loser].append((one.block, -moved))
        changes[one.recipient].append((one.block, moved))
    return changes


def steps(changes: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return the balances that stood, as (from_block, to_block, balance)."""
    by_block: dict[int, int] = defaultdict(int)
    for block, change in changes:
        by_block[block] += change
    rows: list[tuple[int, int, int]] = []
    balance = 0
    for block in sorted(by_block):
        if by_block[block]:
            balance += by_block[block]
            rows.append((block, FOREVER, balance))
    return [
        (start, rows[i + 1][0] if i + 1 < len(rows) else FOREVER, b)
        for i, (start, _, b) in enumerate(rows)
    ]


def tables(world: World) -> dict[str, pa.Table]:
    """Return every table of the layout."""
    number = {address: index for index, address in enumerate(world.addresses)}
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    rows["wallets"] = [
        (number[one], one, one in world.contract_wallets or None) for one in world.addresses
    ]
    for contract in world.contracts:
        _contract_rows(contract, world, number, rows)
    _activity_rows(world, number, rows)
    for chain_id, last in world.last_blocks.items():
        rows["blocks"] += [
            (chain_id, block, world.timestamp(chain_id, block), None) for block in range(last + 1)
        ]
    return {name: _table(name, rows[name]) for name in TABLES}


def _contract_rows(
    contract: Contract, world: World, number: dict[str, int], rows: dict[str, list[Any]]
) -> None:
    own = [one for one in world.transfers if one.contract == contract.contract]
    cid = contract.contract
    for one in own:
        rows["transfers"].append(
            (
                cid,
                one.block,
                one.log_index,
                number[one.sender],
                number[one.recipient],
                *split(one.amount),
                one.count,
            )
        )
    below_zero = 0
    for wallet, changes in sided(contract.standard, own).items():
        stood = steps(changes)
        below_zero += wallet != ZERO and any(balance < 0 for *_, balance in stood)
        rows["history"] += [
            (cid, number[wallet], a, b, *split(balance), sort_key(balance))
            for a, b, balance in stood
        ]
        if stood and stood[-1][2]:
            rows["balances"].append(
                (cid, number[wallet], *split(stood[-1][2]), sort_key(stood[-1][2]))
            )
    known = dict(vars(replace(contract, below_zero=below_zero)))
    if known["total_supply"] is not None:
        known["total_supply"] = str(known["total_supply"])
    rows["contracts"].append(tuple(known[name] for name in TABLES["contracts"]))
    if contract.standard in ("ERC721", "ERC1155"):
        for token_id in {one.amount for one in own}:
            moves = [one for one in own if one.amount == token_id]
            for wallet, changes in sided(contract.standard, moves).items():
                by_block: dict[int, int] = defaultdict(int)
                for block, change in changes:
                    by_block[block] += change
                rows["nft_changes"] += [
                    (cid, *split(token_id), number[wallet], block, change)
                    for block, change in by_block.items()
                    if change
                ]


def _activity_rows(world: World, number: dict[str, int], rows: dict[str, list[Any]]) -> None:
    chain_of = {one.contract: one.chain_id for one in world.contracts}
    seen: dict[tuple[int, str], list[int]] = defaultdict(list)
    had_before = {
        (chain_of[contract], wallet)
        for contract, *_, wallet, block, _ in rows["nft_changes"]
        if not block
    }
    for one in world.transfers:
        for side in {one.sender, one.recipient}:
            seen[chain_of[one.contract], side].append(one.block)
    for (chain_id, wallet), blocks in seen.items():
        days = None
        if world.seconds.get(chain_id, 1):
            days = len({world.timestamp(chain_id, block) // 86_400 for block in blocks})
        rows["activity"].append(
            (
                chain_id,
                number[wallet],
                0 if (chain_id, number[wallet]) in had_before else min(blocks),
                min(blocks),
                max(blocks),
                len(blocks),
                days,
            )
        )


def _table(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = {
        "int32": pa.int32(),
        "int64": pa.int64(),
        "string": pa.string(),
        "boolean": pa.bool_(),
        "decimal(38,0)": pa.decimal128(38, 0),
    }
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(TABLES[name])
    schema = TABLES[name].items()
    return pa.table(
        {
            key: pa.array(list(values), type=kinds[kind])
            for (key, kind), values in zip(schema, columns, strict=True)
        }
    )


@dataclass
class WorldCatalog:
    """The contracts of a world."""

    world: World

    def contract(self, chain_id: int, address: str) -> Contract | None:
        return next(
            (c for c in self.world.contracts if (c.chain_id, c.address) == (chain_id, address)),
            None,
        )

    def by_symbol(self, chain_id: int, symbol: str, *, nft: bool) -> list[Contract]:
        return [c for c in self._on(chain_id, nft) if (c.symbol or "").lower() == symbol.lower()]

    def symbols(self, chain_id: int, *, nft: bool) -> list[str]:
        return [c.symbol for c in self._on(chain_id, nft) if c.symbol]

    def lacking(self, chain_id: int) -> dict[str, int]:
        here = [c for c in self.world.contracts if c.chain_id == chain_id]
        return {
            name: sum(bool(getattr(c, name)) for c in here) for name in ("below_zero", "unseen")
        }

    def _on(self, chain_id: int, nft: bool) -> list[Contract]:
        return [
            c
            for c in self.world.contracts
            if c.chain_id == chain_id and (c.standard in ("ERC721", "ERC1155")) == nft
        ]


@dataclass
class WorldClock:
    """The blocks of a world."""

    world: World

    def last(self, chain_id: int) -> tuple[int, int | None]:
        block = self.world.last_blocks[chain_id]
        return block, self.world.timestamp(chain_id, block)

    def block_at(self, chain_id: int, timestamp: int) -> int | None:
        step = self.world.seconds.get(chain_id, 3600)
        if not step:
            return None
        return min(max(timestamp - GENESIS, -1) // step, self.world.last_blocks[chain_id])

    def untimed(self, chain_id: int) -> tuple[int, int]:
        blocks = self.world.last_blocks[chain_id]
        return (0 if self.world.seconds.get(chain_id, 3600) else blocks), blocks

    def newest(self, chain_id: int, block: int) -> int:
        return block

    def moment(self, chain_id: int, block: int) -> Moment:
        return self.world.timestamp(chain_id, block), None


class WorldDataset(Dataset):
    """A dataset over a world's tables, in DuckDB's memory."""

    def __init__(self, world: World) -> None:
        self.names(world)
        catalog, clock = self.catalog, self.clock
        super().__init__(self.about)
        self.catalog, self.clock = catalog, clock
        self.connection = duckdb.connect()
        for name, table in tables(world).items():
            self.connection.register("arriving", table)
            self.connection.execute(f"CREATE TABLE {name} AS FROM arriving")
            self.connection.unregister("arriving")

    @classmethod
    def unconnected(cls, world: World) -> WorldDataset:
        """Return a dataset that knows names and times, and answers nothing."""
        dataset = cls.__new__(cls)
        dataset.names(world)
        return dataset

    def names(self, world: World) -> None:
        self.world = world
        self.catalog = WorldCatalog(world)
        # The real one: it adds up the balances.
        self.catalog.supplies = Catalog(self.read).supplies
        self.clock = WorldClock(world)
        chains = tuple(
            ChainExtent(chain_id, 0, last, world.timestamp(chain_id, last))
            for chain_id, last in world.last_blocks.items()
        )
        self.about = DataAbout("world", True, "fingerprint", "duckdb", chains)

    def do(self, task: Callable[[Engine], Any], cancel: Cancel | None) -> Any:
        return task(CursorEngine(self.connection))

    def close(self) -> None:
        self.connection.close()


_LISTS = tempfile.TemporaryDirectory(prefix="nbext-lists-")
atexit.register(_LISTS.cleanup)


def stored_list(addresses: Iterable[str]) -> WalletList:
    """Return a list of wallets in a file, as a service stores it."""
    packed = b"".join(bytes.fromhex(address[2:]) for address in sorted(set(addresses)))
    path = Path(_LISTS.name) / list_id([packed])
    path.write_bytes(packed)
    return WalletList(path.name, len(packed) // 20, path)
