"""The tables that ingest prepares and segments query: one layout on every engine.

Types are the ones that DuckDB and Spark both have: no unsigned integers. An amount is
three limbs of 26 decimal digits, ``hi * 10**52 + mid * 10**26 + lo``, each DECIMAL(38,0): sums of limbs
stay exact over all of uint256 on every engine (see `nbext.core.uint256` and `nbext.engine.query.amounts`).
What is stored is in normal form: 0 <= mid, lo < 10**26, and hi alone carries the sign.
Balances also have a ``sort_key``, which orders them (`nbext.engine.query.amounts`): bounds seldom need the limbs.

A ``wallet`` is the rank of its address among all addresses of the data, over all chains: ordering by
wallet is ordering by address, and addresses are joined only for the rows that are returned. A
``contract`` is one address on one chain. ``block`` is the clock of a chain; times are turned into
blocks before a segment is compiled (`nbext.engine.catalog`). Where rows were added to a base, their new wallets have
the next numbers instead, in no order (`nbext.engine.layers`); elsewhere than on DuckDB a wallet is always a rank.

Each generation is immutable. A base's rows are sorted: ``balances`` by contract and wallet, ``history`` by contract,
wallet and from_block, ``nft_changes`` by contract, id and block, ``transfers`` by contract, block and log_index,
``activity`` by chain_id and wallet, ``snapshot_wallets`` by chain_id and block, ``blocks`` by chain_id and block,
``wallets`` by wallet, ``contracts`` by contract.
"""

from __future__ import annotations

from typing import Any

LIMBS = ("hi", "mid", "lo")
# The to_block of a current balance.
FOREVER = 2**62
# The names of the types here, as DuckDB's CREATE TABLE spells them.
SQL_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "decimal(38,0)": "DECIMAL(38,0)",
}


def sql_literal(text: Any) -> str:
    """Return a text or a path as DuckDB's SQL has it."""
    return "'" + str(text).replace("'", "''") + "'"


WALLETS = {"wallet": "int32", "address": "string", "is_contract": "boolean"}

# Balances that are not zero. ERC20: the exact sum of transfers, which can be negative where the data
# starts after the contract did. ERC721 and ERC1155: how many the wallet owns, in ``lo``.
BALANCES = {
    "contract": "int32",
    "wallet": "int32",
    "hi": "decimal(38,0)",
    "mid": "decimal(38,0)",
    "lo": "decimal(38,0)",
    "sort_key": "int64",
}

# How many of a token id a wallet gained in a block, or lost (below zero): never zero. Who owns what, now or at a block,
# is a sum over these rows. Beside transfers they are what a snapshot shows, at its block, and ids that their first
# sender had before, at the block of the contract's snapshot, or else the chain's first; transfers up to a contract's
# snapshot are left out.
NFT_CHANGES = {
    "contract": "int32",
    "id_hi": "decimal(38,0)",
    "id_mid": "decimal(38,0)",
    "id_lo": "decimal(38,0)",
    "wallet": "int32",
    "block": "int64",
    "change": "decimal(38,0)",
}

# Whom a snapshot of holders shows, and at which block: seen then, without a transfer.
SNAPSHOT_WALLETS = {"chain_id": "int64", "wallet": "int32", "block": "int64"}

# Each balance that a wallet ever had, and the blocks [from_block, to_block) in which it stood.
# Self-transfers leave no row. A balance of zero after one that was not is a row too. Of NFTs, only what stood at the
# end of a block.
HISTORY = {
    "contract": "int32",
    "wallet": "int32",
    "from_block": "int64",
    "to_block": "int64",
    "hi": "decimal(38,0)",
    "mid": "decimal(38,0)",
    "lo": "decimal(38,0)",
    "sort_key": "int64",
}

# Every transfer once. The limbs are the amount (ERC20), or the token id (ERC721, ERC1155) with its ``count``.
TRANSFERS = {
    "contract": "int32",
    "block": "int64",
    "log_index": "int64",
    "sender": "int32",
    "recipient": "int32",
    "hi": "decimal(38,0)",
    "mid": "decimal(38,0)",
    "lo": "decimal(38,0)",
    "count": "int64",
}

# One row per wallet and chain, of its transfers and of the snapshots that show it. ``active_days`` (UTC days) is null
# where the data has no block times. ``seen_block``: the first block, or an earlier one from which on it had an NFT.
ACTIVITY = {
    "chain_id": "int64",
    "wallet": "int32",
    "seen_block": "int64",
    "first_block": "int64",
    "last_block": "int64",
    "transfers": "int64",
    "active_days": "int32",
}

# Every block that the data has a transfer or a time of; ``timestamp`` is seconds since 1970, or null, and ``hash`` 0x
# and 64 lower-case hex digits, or null.
BLOCKS = {"chain_id": "int64", "block": "int64", "timestamp": "int64", "hash": "string"}

# What is known of each contract; null where nothing is. ``standard``: ERC20, ERC721, ERC1155; ``inferred`` where only
# its transfers say which. ``unseen``: token ids that left a wallet which never received them: their mints are missing.
# ``below_zero``: wallets, without the zero address, with a balance below zero at the end of some block.
CONTRACTS = {
    "contract": "int32",
    "chain_id": "int64",
    "address": "string",
    "standard": "string",
    "name": "string",
    "symbol": "string",
    "decimals": "int32",
    "logo": "string",
    "verified": "boolean",
    "spam": "boolean",
    "deployer": "string",
    "deployed_block": "int64",
    "total_supply": "string",
    "holders": "int64",
    "transfers": "int64",
    "inferred": "boolean",
    "unseen": "int64",
    "below_zero": "int64",
}

TABLES = {
    "wallets": WALLETS,
    "balances": BALANCES,
    "nft_changes": NFT_CHANGES,
    "history": HISTORY,
    "transfers": TRANSFERS,
    "snapshot_wallets": SNAPSHOT_WALLETS,
    "activity": ACTIVITY,
    "blocks": BLOCKS,
    "contracts": CONTRACTS,
}
