"""Every form of the grammar, asked of a small world on two chains, for the tests of engines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from nbext.engine import storage
from nbext.engine.dataset import Contract, Question
from nbext.language import language
from tests.language.tables import GENESIS, ZERO, Transfer, World, stored_list, tables

DEAD = "0x000000000000000000000000000000000000dead"
WALLETS = [f"0x{n:040x}" for n in range(0xA00, 0xA20)]
LAST = 240
HUGE = 2**256 - 1
USDC, UNI, BAYC, PUNK, GAME, OPX = range(6)
CONTRACTS = [
    Contract(USDC, 1, "0x" + "c0" * 20, "ERC20", "USD Coin", "USDC", 6),
    Contract(UNI, 1, "0x" + "c1" * 20, "ERC20", "Uniswap", "UNI", 18),
    Contract(BAYC, 1, "0x" + "c2" * 20, "ERC721", "Bored Ape Yacht Club", "BAYC", None),
    Contract(PUNK, 1, "0x" + "c3" * 20, "ERC721", "Punks", "PUNK", None),
    Contract(GAME, 1, "0x" + "c4" * 20, "ERC1155", "Game items", "GAME", None),
    Contract(OPX, 10, "0x" + "c5" * 20, "ERC20", "Optimism", "OP", 18),
]
LIST = stored_list([*WALLETS[::3], "0x" + "ee" * 20])
LISTS = {LIST.id: LIST}
STORED = {"operator": "AND", "filters": {"nft": {"nft": "PUNK"}}}


def _transfers() -> list[Transfer]:
    """Draw transfers by a fixed rule: mints, moves, a self-transfer, burns, and amounts of all lengths."""
    found: list[Transfer] = []
    units = {USDC: 10**6, UNI: 10**18, OPX: 10**18}
    for n, wallet in enumerate(WALLETS):
        for contract, unit in units.items():
            if n % (contract + 2) == 0:
                found.append(Transfer(contract, 2 * n, n, ZERO, wallet, (n + 1) * 1000 * unit + n))
        if n % 3 == 0:
            found.append(Transfer(BAYC, 3 * n, n, ZERO, wallet, n))
        if n % 4 == 0:
            found.append(Transfer(PUNK, 3 * n + 1, n, ZERO, wallet, HUGE - n))
        if n % 5 == 0:
            found.append(Transfer(GAME, 5 * n, n, ZERO, wallet, n % 2, 10 + n))
    found += [
        Transfer(UNI, 1, 99, ZERO, WALLETS[0], HUGE // 2),
        Transfer(USDC, 100, 1, WALLETS[0], WALLETS[1], 500 * 10**6),
        Transfer(USDC, 120, 1, WALLETS[4], WALLETS[1], 250 * 10**6),
        Transfer(USDC, 140, 1, WALLETS[6], DEAD, 7 * 10**6),
        Transfer(USDC, 150, 1, WALLETS[8], WALLETS[8], 10**6),
        Transfer(UNI, 160, 1, WALLETS[3], WALLETS[5], 4000 * 10**18 + 3),
        Transfer(BAYC, 170, 1, WALLETS[3], WALLETS[2], 3),
        Transfer(BAYC, 200, 1, WALLETS[2], WALLETS[3], 3),
        Transfer(PUNK, 210, 1, WALLETS[4], DEAD, HUGE - 4),
        Transfer(GAME, 220, 1, WALLETS[5], WALLETS[7], 1, 5),
    ]
    return found


_MINTED = Counter[int]()
for _one in _transfers():
    _MINTED[_one.contract] += (_one.count if _one.contract == GAME else _one.amount) * (
        _one.sender == ZERO
    )
WORLD = World(
    [
        replace(one, total_supply=None if one.contract in (BAYC, PUNK) else _MINTED[one.contract])
        for one in CONTRACTS
    ],
    _transfers(),
    {1: LAST, 10: LAST},
    contract_wallets=frozenset(WALLETS[::7]),
)


def _day(number: int) -> str:
    """Return block ``24 * number``'s time: blocks of the world are an hour apart."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(GENESIS + number * 86_400, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def at_least(number: int, filters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return filters for at least so many of several ones: of seven of nine, 119 conditions."""
    if number in (1, len(filters)):
        return {"any" if number == 1 else "all": filters}
    first, *rest = filters
    return {"any": [{"all": [first, at_least(number - 1, rest)]}, at_least(number, rest)]}


FORMS: dict[str, dict[str, Any]] = {
    "token": {"token": {"token": "USDC"}},
    "token_min": {"token": {"token": "UNI", "balance": {"min": "4000"}}},
    "token_max": {"token": {"token": "USDC", "balance": {"max": "9000.000008"}}},
    "token_between_many_digits": {
        "token": {
            "token": "UNI",
            "unit": "raw",
            "balance": {"min": "4000000000000000000003", "max": str(HUGE // 2)},
        }
    },
    "token_none_too": {"token": {"token": "USDC", "balance": {"min": "0", "max": "5000"}}},
    "token_held_since": {"token": {"token": "USDC", "balance": {"min": "1000"}, "heldSince": "5d"}},
    "token_as_of": {"asOf": _day(4), "token": {"token": "USDC", "balance": {"min": "1"}}},
    "token_held_since_as_of": {"asOf": _day(6), "token": {"token": "USDC", "heldSince": _day(3)}},
    "token_on_a_chain": {"token": [{"token": "USDC"}, {"token": "OP", "chain": "optimism"}]},
    "nft": {"nft": {"nft": "BAYC", "count": {"min": 1}}},
    "nft_ids": {"nft": {"nft": "BAYC", "tokenIds": [3, "6", 9]}},
    "nft_ids_held_since": {"nft": {"nft": "BAYC", "tokenIds": [3, 6], "heldSince": "4d"}},
    "nft_ids_of_a_multi_token": {"nft": {"nft": "GAME", "tokenIds": [1], "count": {"min": 6}}},
    "not_nft_as_of": {"asOf": _day(8), "not": {"nft": {"nft": "GAME"}}},
    "nft_multi_token_as_of": {"asOf": _day(8), "nft": {"nft": "GAME", "tokenIds": [0, 1]}},
    "collections_at_least": {"collections": {"of": ["BAYC", "PUNK", "GAME"], "atLeast": 2}},
    "collections_distinct": {"collections": {"distinct": {"min": 1, "max": 2}}},
    "transfer_in": {
        "transfer": {"direction": "in", "token": "USDC", "amount": {"min": "250"}, "after": "6d"}
    },
    "transfer_out": {
        "transfer": {
            "direction": "out",
            "token": "UNI",
            "total": {"min": "4000.000000000000000003"},
        }
    },
    "transfer_any": {"transfer": {"direction": "any", "count": {"min": 3}}},
    "transfer_window": {
        "transfer": {"direction": "any", "token": "USDC", "after": _day(4), "before": _day(6)}
    },
    "transfer_mint": {"transfer": {"direction": "mint", "nft": "GAME", "amount": {"min": "12"}}},
    "transfer_burn": {"transfer": {"direction": "burn", "token": "USDC"}},
    "transfer_counterparty": {
        "transfer": {"direction": "in", "counterparty": WALLETS[0], "token": "USDC"}
    },
    "transfer_total": {
        "transfer": {"direction": "in", "token": "USDC", "total": {"min": "4000", "max": "9999"}}
    },
    "activity_first": {"activity": {"first": {"after": _day(1), "before": _day(2)}}},
    "activity_last": {"activity": {"last": {"after": "3d"}}},
    "activity_transfers": {"activity": {"transfers": {"min": 4}, "activeDays": {"min": 2}}},
    "activity_as_of": {
        "asOf": _day(5),
        "activity": {"transfers": {"min": 3}, "activeDays": {"min": 2}},
    },
    "wallet_in": {"wallet": {"in": [WALLETS[3], WALLETS[5], DEAD]}, "token": {"token": "UNI"}},
    "wallet_contract": {
        "wallet": {"contract": True},
        "any": [{"nft": {"nft": "BAYC"}}, {"token": {"token": "UNI"}}],
    },
    "wallet_list": {"wallet": {"list": LIST.id, "contract": False}, "token": {"token": "USDC"}},
    "segment": {"segment": {"id": "stored"}, "token": {"token": "USDC"}},
    "all_any_not": {
        "all": [
            {"any": [{"nft": {"nft": "BAYC"}}, {"nft": {"nft": "PUNK"}}]},
            {"not": {"token": {"token": "UNI"}}},
        ]
    },
    "seven_of_nine": at_least(
        7,
        [
            *({"token": {"token": token}} for token in ("USDC", "UNI")),
            *({"nft": {"nft": nft}} for nft in ("BAYC", "PUNK", "GAME")),
            *({"transfer": {"direction": "in", "token": token}} for token in ("USDC", "UNI")),
            *({"transfer": {"direction": "in", "nft": nft}} for nft in ("BAYC", "PUNK")),
        ],
    ),
    "not_alone": {"not": {"nft": {"nft": "BAYC"}}},
    "order_by_balance": {"token": {"token": "UNI"}, "orderBy": "-UNI_balance"},
    "order_by_count": {
        "any": [{"nft": {"nft": "GAME"}}, {"nft": {"nft": "BAYC"}}],
        "orderBy": "GAME_count",
    },
    "order_by_address": {"nft": {"nft": "BAYC"}, "orderBy": "-address"},
    "order_by_time": {
        "token": {"token": "USDC"},
        "columns": ["lastSeen", "firstSeen", "transfers"],
        "orderBy": "-lastSeen",
    },
    "order_by_days_as_of": {
        "asOf": _day(5),
        "token": [{"token": "USDC"}, {"token": "UNI"}],
        "columns": ["activeDays"],
        "orderBy": "activeDays",
    },
    "shares": {
        "any": [
            {"token": {"token": "USDC"}},
            {"token": {"token": "UNI"}},
            {"nft": {"nft": "GAME"}},
        ],
        "columns": ["share"],
        "orderBy": "-UNI_share",
    },
    "share_as_of": {"asOf": _day(4), "token": {"token": "USDC"}, "columns": ["share"]},
    "transferred": {
        "any": [
            {"transfer": {"direction": "in", "token": "UNI", "after": _day(1)}},
            {"nft": {"nft": "BAYC"}},
        ],
        "columns": ["lastTransfer", "transferred", "transferCount", "firstTransfer"],
        "orderBy": "-transferred",
    },
    "transferred_of_nfts": {
        "transfer": {"direction": "any", "nft": "GAME", "count": {"min": 0}},
        "columns": ["transferred"],
        "orderBy": "amount",
    },
    "exclude_nothing": {
        "exclude": [],
        "transfer": {"direction": "in", "token": "USDC", "after": "6d"},
    },
}


def question(name: str, dataset: Any, *, by_address: bool = False) -> Question:
    """Return the question of one form on a dataset that holds the world, and perhaps others of the same symbols."""
    filters = _addressed(FORMS[name]) if by_address else FORMS[name]
    request = {"operator": "AND", "filters": filters, "fileType": "json", "limit": 100}
    plan = language.resolve(
        language.parse(request), dataset, saved={"stored": STORED}.get, lists=LISTS.get
    )
    return language.compile(plan)


def _addressed(part: Any) -> Any:
    """Return filters with the addresses of contracts for their symbols."""
    if isinstance(part, dict):
        return {key: _addressed(one) for key, one in part.items()}
    if isinstance(part, list):
        return [_addressed(one) for one in part]
    return next((one.address for one in CONTRACTS if one.symbol == part), part)


def generation(data_dir: Path, world: World = WORLD, fingerprint: str = "f0f0f0") -> Path:
    """Write a world as the current generation of a data folder, and return the generation's folder."""
    folder = storage.create_building(data_dir)
    with duckdb.connect(folder / "tables.duckdb") as connection:
        for name, table in tables(world).items():
            connection.register("incoming", table)
            connection.execute(f'CREATE TABLE "{name}" AS FROM incoming')
            connection.unregister("incoming")
    chains = [
        {
            "chain_id": chain_id,
            "first_block": 0,
            "last_block": last,
            "last_timestamp": world.timestamp(chain_id, last),
        }
        for chain_id, last in world.last_blocks.items()
    ]
    manifest = {
        "fingerprint": fingerprint,
        "name": "forms",
        "synthetic": True,
        "created_at": "2021-01-01T00:00:00Z",
        "chains": chains,
        "tables": {},
        "files": [],
    }
    return storage.publish(data_dir, folder, manifest).folder
