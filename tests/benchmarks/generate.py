"""Realistic transfers of any size, in ethereum-etl's schema: seeded, streamed, every row a function of its number.

Contracts are Zipf-popular; one in seven is a collection. Wallets are popular by a power law. Nobody sends
what they do not have: in each contract, a fixed share of the transfers sends on what an earlier one
brought, each at most once, and the others mint. So no state but a counter for each contract is kept, and
100 million rows take no more memory than one million.

    python -m tests.benchmarks generate --rows 10_000_000 --out FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CHUNK = 500_000
ROWS_PER_BLOCK = 200
FIRST_BLOCK = 12_000_000
FIRST_TIME = 1_615_234_816
SECONDS_PER_BLOCK = 12
# The share of transfers that are not mints. Below 0.66, so that amounts always shrink along a chain.
SENT_ON = 0.65
TRANSFERS = "token_transfers.parquet"
U64 = np.uint64
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


@dataclass(frozen=True)
class World:
    """What is generated: how much of it, and from which seed."""

    rows: int
    contracts: int = 20_000
    wallets: int = 5_000_000
    seed: int = 1

    def contract_address(self, rank: int) -> str:
        """The address of the contract of that popularity, 0 the most popular."""
        return addresses(np.array([rank]), self.seed * 4 + 1)[0].as_py()

    def wallet_address(self, number: int) -> str:
        """The address of a wallet, 0 the most popular."""
        return addresses(np.array([number]), self.seed * 4 + 2)[0].as_py()

    @staticmethod
    def is_collection(rank: int) -> bool:
        """Say whether the contract of that popularity is an ERC721."""
        return rank % 7 == 3


def generate(folder: Path, world: World) -> list[Path]:
    """Write transfers, blocks, tokens and contracts of a world; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    writer = None
    for chunk in chunks(world):
        writer = writer or pq.ParquetWriter(folder / TRANSFERS, chunk.schema, compression="snappy")
        writer.write_table(chunk)
    if writer:
        writer.close()
    return [folder / TRANSFERS, *_facts(folder, world)]


def generated(folder: Path, world: World) -> Path:
    """Return the folder of a world's files inside this one, made where it is not there yet."""
    source = folder / f"rows-{world.rows}-seed-{world.seed}"
    # The facts are written last: without them the transfers may be half there.
    if not (source / "contracts.parquet").is_file():
        generate(source, world)
    return source


def chunks(world: World, first: int = 0) -> Iterator[pa.Table]:
    """Yield the transfers from the ``first`` on, in order of their blocks, a table at a time."""
    shares = np.cumsum(1.0 / np.arange(1, world.contracts + 1))
    seen = np.zeros(world.contracts, np.int64)
    for start in range(0, world.rows, CHUNK):
        row = np.arange(start, min(start + CHUNK, world.rows))
        contract = np.searchsorted(shares, _share(row, world.seed * 4) * shares[-1])
        place = _places(contract, seen)
        here = row >= first
        if here.any():
            yield _table(world, row[here], contract[here], place[here])


def _table(world: World, row: np.ndarray, contract: np.ndarray, place: np.ndarray) -> pa.Table:
    seed = world.seed
    collection = contract % 7 == 3
    sent_on = np.floor(SENT_ON * (place + 1)) > np.floor(SENT_ON * place)
    parent = np.floor(SENT_ON * place).astype(np.int64)
    sender = addresses(_recipient(world, contract, parent), seed * 4 + 2)
    zero = pa.scalar("0x" + "0" * 40)
    block = FIRST_BLOCK + row // ROWS_PER_BLOCK
    value = np.where(collection, "", "").astype(object)
    value[collection] = _token_ids(place[collection])
    value[~collection] = _amounts(world, contract[~collection], place[~collection])
    return pa.table(
        {
            "token_address": addresses(contract, seed * 4 + 1),
            "from_address": pc.if_else(pa.array(sent_on), sender, zero),
            "to_address": addresses(_recipient(world, contract, place), seed * 4 + 2),
            "value": pa.array(value, pa.string()),
            "transaction_hash": _hexed(row // 2, seed * 4 + 3, 32),
            "log_index": pa.array(row % ROWS_PER_BLOCK, pa.int64()),
            "block_number": pa.array(block, pa.int64()),
        }
    )


def _places(contract: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return how many transfers of its contract came before each, and count these."""
    order = np.argsort(contract, kind="stable")
    ordered = contract[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(contract), np.int64)
    place[order] = np.arange(len(contract)) - first + seen[ordered]
    np.add.at(seen, contract, 1)
    return place


def _recipient(world: World, contract: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return who the contract's transfer at that place goes to."""
    share = _share(contract.astype(np.int64) * 2**40 + place, world.seed * 4 + 2)
    return (world.wallets * share**3).astype(np.int64)


def _token_ids(place: np.ndarray) -> list[str]:
    """Return the id that moves: that of the mint at the chain's end."""
    root = place.copy()
    while True:
        moved = np.floor(SENT_ON * (root + 1)) > np.floor(SENT_ON * root)
        if not moved.any():
            break
        root[moved] = np.floor(SENT_ON * root[moved]).astype(np.int64)
    return [str(n) for n in (root - np.floor(SENT_ON * root).astype(np.int64)).tolist()]


def _amounts(world: World, contract: np.ndarray, place: np.ndarray) -> list[str]:
    """Return amounts that shrink with the place: what is sent on was there."""
    share = 0.8 + 0.2 * _share(contract.astype(np.int64) * 2**40 + place, world.seed * 4)
    parts = (share * 1e15).astype(np.int64) // (place + 1)
    # Six decimals for every fifth contract, like the stablecoins; 18 and large supplies for the others.
    zeros = np.where(contract % 5 == 0, 0, 9)
    return [
        f"{part}{'0' * zero}" for part, zero in zip(parts.tolist(), zeros.tolist(), strict=True)
    ]


def _facts(folder: Path, world: World) -> list[Path]:
    ranks = np.arange(world.contracts)
    address = addresses(ranks, world.seed * 4 + 1)
    nft = ranks % 7 == 3
    blocks = np.arange(FIRST_BLOCK, FIRST_BLOCK + (world.rows - 1) // ROWS_PER_BLOCK + 1)
    tables = {
        "blocks.parquet": {
            "number": blocks,
            "timestamp": FIRST_TIME + (blocks - FIRST_BLOCK) * SECONDS_PER_BLOCK,
        },
        "contracts.parquet": {"address": address, "is_erc20": ~nft, "is_erc721": nft},
        "tokens.parquet": {
            "address": address,
            "symbol": [f"T{rank}" for rank in ranks],
            "name": [f"Made-up contract {rank}" for rank in ranks],
            "decimals": [None if rank % 7 == 3 else 6 if rank % 5 == 0 else 18 for rank in ranks],
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / name)
    return [folder / name for name in tables]


def addresses(number: np.ndarray, salt: int) -> pa.Array:
    """Return a made-up address for each number."""
    return _hexed(number, salt, 20)


def _share(number: np.ndarray, salt: int) -> np.ndarray:
    """Return a number from 0 to 1 for each number: always the same one."""
    return (_mixed(number, salt) >> U64(11)) * 2.0**-53


def _mixed(number: np.ndarray, salt: int) -> np.ndarray:
    """SplitMix64: every bit of the answer hangs on every bit of the number."""
    with np.errstate(over="ignore"):
        z = number.astype(U64) + U64(salt + 1) * U64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
        return z ^ (z >> U64(31))


def _hexed(number: np.ndarray, salt: int, width: int) -> pa.Array:
    """Return 0x and the hex digits of ``width`` bytes made of each number."""
    words = [_mixed(number, salt + 1000 * word) for word in range(-(-width // 8))]
    raw = np.stack(words, axis=1).view(np.uint8)[:, :width]
    text = np.empty((len(number), 2 + 2 * width), np.uint8)
    text[:, :2] = np.frombuffer(b"0x", np.uint8)
    text[:, 2::2] = _HEX[raw >> 4]
    text[:, 3::2] = _HEX[raw & 15]
    offsets = np.arange(len(number) + 1, dtype=np.int32) * (2 + 2 * width)
    return pa.StringArray.from_buffers(
        len(number), pa.py_buffer(offsets), pa.py_buffer(text.tobytes())
    )


def add_world_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the generated files depend on."""
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)


def add_kept_world_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the same, and where they are kept from one run to the next."""
    add_world_arguments(parser)
    parser.add_argument(
        "--folder", type=Path, required=True, help="where the generated files and the data are kept"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``generate``."""
    add_world_arguments(parser)
    parser.add_argument("--out", type=Path, required=True)


def run(args: argparse.Namespace) -> None:
    """Write the files and name them."""
    for path in generate(args.out, World(args.rows, seed=args.seed)):
        print(path)
