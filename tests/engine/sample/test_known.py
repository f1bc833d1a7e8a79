"""The well-known contracts are facts: each is checked against public lists where the machine has them."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pyarrow.parquet as pq

from nbext.core.addresses import checksummed
from nbext.engine.sample.known import COLLECTIONS, KNOWN, TOKENS
from tests.sample_generator.diary import key_of
from tests.sample_generator.spam import SPAM
from tests.shared_data import shared_data

LISTS = (
    "sequence_token_directory",
    "metamask_contract_metadata",
    "uniswap_default_token_list",
    "ethereum_lists_tokens",
)
ETHEREUM_LISTS_CHAINS = {"eth": 1, "arb": 42161}


@cache
def listed() -> dict[tuple[int, str], set[tuple[str | None, ...]]]:
    """What the public lists say of each contract: standard, symbol, name, decimals."""
    facts = defaultdict(set)
    for name in LISTS:
        for row in pq.read_table(shared_data(f"metadata/{name}.parquet")).to_pylist():
            chain_id = row.get("chain_id") or ETHEREUM_LISTS_CHAINS.get(row.get("chain"))
            standard = (row.get("standard") or "erc20").upper()
            decimals = str(row["decimals"]) if standard == "ERC20" else None
            facts[chain_id, row["address"].lower()].add(
                (standard, row["symbol"], row["name"], decimals)
            )
    return facts


def test_a_public_list_says_the_same_of_each_well_known_contract():
    def facts(known):
        decimals = None if known.decimals is None else str(known.decimals)
        return known.standard, known.symbol, known.name, decimals

    others = [
        (key_of(known), facts(known), listed()[known.chain_id, known.address])
        for known in KNOWN
        if facts(known) not in listed()[known.chain_id, known.address]
    ]
    assert others == []


def test_each_address_is_written_with_its_checksum():
    wrong = [
        (key_of(known), known.checksum_address, checksummed(known.address))
        for known in (*KNOWN, *SPAM)
        if known.checksum_address != checksummed(known.address)
    ]
    assert wrong == []


def test_every_chain_has_its_dollar_tokens_and_most_have_two_of_a_kind():
    symbols = defaultdict(set)
    for token in TOKENS:
        symbols[token.chain].add(token.symbol)
    assert {
        chain: sorted(s for s in of if s.startswith("USD")) for chain, of in symbols.items()
    } == {
        "ethereum": ["USDC", "USDT"],
        "polygon": ["USDC", "USDC.e", "USDT"],
        "optimism": ["USDC", "USDC.e", "USDT"],
        "base": ["USDC", "USDT", "USDbC"],
        "arbitrum": ["USDC", "USDC.e", "USDT0"],
    }


def test_exactly_one_token_symbol_and_one_collection_symbol_are_ambiguous():
    def twice(contracts):
        counts = Counter((known.chain, known.symbol) for known in contracts if known.symbol)
        return [place for place, count in counts.items() if count > 1]

    spam_tokens = [known for known in SPAM if known.standard == "ERC20"]
    spam_collections = [known for known in SPAM if known.standard != "ERC20"]
    assert twice([*TOKENS, *spam_tokens]) == [("ethereum", "RPL")]
    assert twice([*COLLECTIONS, *spam_collections]) == [("ethereum", "LAND")]


def test_no_made_up_contract_is_at_the_address_of_a_known_one():
    assert not {known.address for known in KNOWN} & {known.address for known in SPAM}
