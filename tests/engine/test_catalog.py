"""Contracts are found by address, by symbol and by literal text, best first."""

from __future__ import annotations

import time

import pytest

from nbext.core.addresses import BURN_ADDRESSES
from nbext.engine.dataset import Contract
from nbext.engine.open import open_dataset
from tests.engine.hand_made import ADDRESSES, balance, contract, generation

CONTRACTS = [
    contract(
        1,
        symbol="BAYC",
        name="Bored Ape Yacht Club",
        standard="ERC721",
        verified=True,
        holders=5000,
    ),
    contract(
        2, symbol="BAYC", name="BoredApeYachtCIub", standard="ERC721", spam=True, holders=9000
    ),
    contract(3, symbol="MAYC", name="Mutant Ape Yacht Club", standard="ERC721", holders=10),
    contract(
        4, symbol="APE", name="ApeCoin", verified=True, decimals=18, total_supply=str(2**256 - 1)
    ),
    contract(5, symbol="ape", name="Ape", standard="ERC721"),
    contract(6, symbol="100%_X", name="A % of _"),
    contract(7, symbol="NA", name="Pokémon Café"),
    contract(8, chain_id=10, symbol="APE", name="Ape on another chain", standard="ERC721"),
    contract(9, symbol=None, name=None),
    contract(10, symbol="KONG", name="Great Ape", standard="ERC1155"),
    contract(11, symbol="SHP", name="Landscapers", standard="ERC721"),
    contract(12, symbol="A2", name="apex legends", standard="ERC721"),
]
NFT = ("ERC721", "ERC1155")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("catalog")
    generation(data_dir, {"contracts": CONTRACTS})
    dataset = open_dataset(data_dir)
    yield dataset.catalog
    dataset.close()


def found(catalog, term, standards=NFT, *, limit=20, offset=0, chain_id=1):
    total, hits = catalog.search(chain_id, term, standards=standards, limit=limit, offset=offset)
    return total, [contract.contract for contract, _ in hits]


def test_a_contract_is_found_at_its_address_on_its_chain(catalog):
    address = CONTRACTS[3]["address"]
    assert catalog.contract(1, address) == Contract(
        4,
        1,
        address,
        "ERC20",
        name="ApeCoin",
        symbol="APE",
        decimals=18,
        verified=True,
        total_supply=2**256 - 1,
    )
    assert catalog.contract(10, address) is None
    assert catalog.contract(1, "0x" + "f" * 40) is None
    assert catalog.contract(99, address) is None


def test_a_contract_says_how_many_were_ever_below_zero_and_what_the_burn_address_holds(tmp_path):
    dead = int(BURN_ADDRESSES[1], 16)
    contracts = [
        {**one, "below_zero": number}
        for one, number in zip(CONTRACTS[:3], (2, 0, None), strict=True)
    ]
    wallets = [
        {"wallet": n, "address": address, "is_contract": False}
        for n, address in enumerate(ADDRESSES)
    ]
    wallets.append({"wallet": 100, "address": f"0x{dead:040x}", "is_contract": False})
    rows = {"contracts": contracts, "wallets": wallets, "balances": [balance(2, 100, 4)]}
    generation(tmp_path, rows)
    dataset = open_dataset(tmp_path)
    known = [dataset.catalog.contract(1, one["address"]) for one in CONTRACTS[:3]]
    assert [dataset.catalog.lacking(chain)["below_zero"] for chain in (1, 10)] == [1, 0]
    dataset.close()
    assert [(one.below_zero, one.burned) for one in known] == [(2, 0), (0, 4), (None, 0)]


def test_a_symbol_finds_its_contracts_in_any_case_verified_first_spam_last(catalog):
    assert [c.contract for c in catalog.by_symbol(1, "bayc", nft=True)] == [1, 2]
    assert [c.contract for c in catalog.by_symbol(1, "Ape", nft=True)] == [5]
    assert [c.contract for c in catalog.by_symbol(1, "Ape", nft=False)] == [4]
    assert [c.symbol for c in catalog.by_symbol(1, "NA", nft=False)] == ["NA"]
    assert catalog.by_symbol(1, "BAY", nft=True) == []


def test_the_symbols_of_a_chain_are_listed_once(catalog):
    assert catalog.symbols(1, nft=True) == ["A2", "BAYC", "KONG", "MAYC", "SHP", "ape"]
    assert catalog.symbols(1, nft=False) == ["100%_X", "APE", "NA"]
    assert catalog.symbols(99, nft=False) == []


def test_hits_come_by_symbol_name_prefix_word_and_substring(catalog):
    assert found(catalog, "ape") == (7, [5, 12, 1, 3, 10, 11, 2])
    assert [
        score for _, score in catalog.search(1, "ape", standards=NFT, limit=9, offset=0)[1]
    ] == [1.0, 0.8, 0.6, 0.6, 0.6, 0.4, pytest.approx(0.04)]


def test_spam_comes_last_whatever_it_calls_itself(catalog):
    assert found(catalog, "BAYC") == (2, [1, 2])
    assert found(catalog, "bored") == (2, [1, 2])


def test_a_term_is_literal_text_in_any_case_and_without_accents(catalog):
    assert found(catalog, "%", ("ERC20",)) == (1, [6])
    assert found(catalog, "_", ("ERC20",)) == (1, [6])
    assert found(catalog, "POKEMON", ("ERC20",)) == (1, [7])
    assert found(catalog, "café", ("ERC20",)) == (1, [7])
    assert found(catalog, "' OR 1=1 --") == (0, [])


def test_a_name_written_without_its_spaces_is_found_after_the_others(catalog):
    assert found(catalog, "bored ape") == (2, [1, 2])
    assert found(catalog, "boredape") == (2, [1, 2])


@pytest.mark.parametrize("term", ["\u0301", "´", " ¨ "])
def test_a_lone_accent_finds_no_contract_and_not_all_of_them(catalog, term):
    assert found(catalog, term) == (0, [])
    assert found(catalog, f"ape{term}") == found(catalog, "ape")
    assert found(catalog, "") == found(catalog, "  ") != (0, [])


def test_a_search_pages_and_keeps_to_its_chain_and_standards(catalog):
    assert found(catalog, "ape", limit=2, offset=2) == (7, [1, 3])
    assert found(catalog, "ape", limit=2, offset=7) == (7, [])
    assert found(catalog, "ape", ("ERC1155",)) == (1, [10])
    assert found(catalog, "ape", chain_id=10) == (1, [8])
    assert found(catalog, "ape", chain_id=5) == (0, [])


def test_an_address_finds_its_contract(catalog):
    assert found(catalog, CONTRACTS[2]["address"]) == (1, [3])


@pytest.mark.slow
def test_a_hundred_thousand_contracts_are_searched_without_a_scan_of_the_file(tmp_path):
    rows = [
        contract(n, symbol=f"S{n}", name=f"Collection number {n} Ünder", standard="ERC721")
        for n in range(100_000)
    ]
    generation(tmp_path, {"contracts": rows})
    dataset = open_dataset(tmp_path)
    assert found(dataset.catalog, "s77777")[1] == [77777]
    started = time.process_time()
    assert found(dataset.catalog, "number 99999")[0] == 1
    assert time.process_time() - started < 1.0
    dataset.close()
