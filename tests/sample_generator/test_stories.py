"""Each story of the sample is found again by a segment, and by nothing but it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from nbext.engine.open import open_dataset
from nbext.language import language
from tests.sample_generator.cast import DEAD, ZERO, contract, wallets
from tests.sample_generator.diary import by_key
from tests.sample_generator.transfers import written


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    opened = open_dataset(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ask(dataset):
    def rows(filters, operator="AND"):
        plan = language.resolve(
            language.parse({"operator": operator, "filters": filters, "limit": 5_000}), dataset
        )
        found = dataset.ask(language.compile(plan), limit=5_000).rows.to_pylist()
        return {row.pop("address"): exactly(row) for row in found}

    return rows


def exactly(row):
    """Return a row's counts, and its amounts as the digits of the exact columns."""
    return tuple(
        str(value) if f"{name}".endswith("_raw") else value
        for name, value in row.items()
        if f"{name}_raw" not in row
    )


def balances(key):
    """The balances of one contract's holders, summed here."""
    held = defaultdict(int)
    for transfer in written():
        if transfer.contract == by_key()[key]:
            amount = transfer.value if transfer.contract.standard == "ERC20" else transfer.count
            held[transfer.sender] -= amount
            held[transfer.recipient] += amount
    return {
        wallet: amount
        for wallet, amount in held.items()
        if amount > 0 and wallet not in (ZERO, DEAD)
    }


def test_holders_of_a_token_who_own_no_piece_of_a_collection(ask):
    apes = balances("ethereum:BAYC")
    expected = {
        w: (str(n),)
        for w, n in balances("ethereum:UNI").items()
        if n >= 1_000 * 10**18 and w not in apes
    }
    found = ask(
        {"token": {"token": "UNI", "balance": {"min": "1000"}}, "not": {"nft": {"nft": "BAYC"}}}
    )
    assert (found, len(found)) == (expected, 246)


def test_the_communities_of_two_collections_overlap(ask):
    apes, mutants = balances("ethereum:BAYC"), balances("ethereum:MAYC")
    expected = {wallet: (apes[wallet], mutants[wallet]) for wallet in apes.keys() & mutants.keys()}
    found = ask({"nft": [{"nft": "BAYC"}, {"nft": "MAYC"}]})
    assert (found, len(found)) == (expected, 120)


def test_the_leaders_of_airdrop_groups_are_the_wallets_who_received_arb_many_times(ask):
    many = {"direction": "in", "token": "ARB", "count": {"min": 15}}
    found = ask({"chain": "arbitrum", "transfer": many, "wallet": {"contract": False}})
    assert sorted(found) == sorted(wallets("leader"))


def test_flippers_are_the_wallets_with_the_most_transfers(ask):
    found = ask({"activity": {"transfers": {"min": 50}}, "wallet": {"contract": False}})
    assert len(found) == 58
    assert set(found) <= set(wallets("flipper"))


def test_dormant_wallets_are_among_those_last_active_in_the_first_weeks(ask):
    found = ask({"activity": {"last": {"before": "2025-03-04"}}})
    assert set(wallets("dormant")) <= set(found)


def test_those_who_burned_pepe_are_found_by_the_burn(ask):
    found = ask({"transfer": {"direction": "burn", "token": "PEPE"}})
    burned = {
        t.sender
        for t in written()
        if t.contract == by_key()["ethereum:PEPE"] and t.recipient == DEAD
    }
    assert (sorted(found), len(found)) == (sorted(burned), 60)


def test_wallets_that_hold_usdc_on_two_chains_are_found_across_chains(ask):
    here, there = balances("ethereum:USDC"), balances("base:USDC")
    found = ask({"token": [{"token": "USDC"}, {"token": "USDC", "chain": "base"}]})
    assert found == {
        wallet: (str(here[wallet]), str(there[wallet])) for wallet in here.keys() & there.keys()
    }


def test_amounts_that_no_machine_integer_holds_come_back_exactly(ask):
    found = ask({"token": {"token": "MAX"}})
    assert found == {wallet: (str(amount),) for wallet, amount in balances("ethereum:MAX").items()}
    assert max(int(amount) for (amount,) in found.values()) > 2**255


def test_contracts_are_among_the_holders_and_can_be_left_out(ask):
    token = {"token": "UNI"}
    both, people = ask({"token": token}), ask({"token": token, "wallet": {"contract": False}})
    assert contract("exchange") in both
    assert both.keys() - people.keys() <= {
        contract(name) for name in ("exchange", "safe 1", "safe 2", "safe 3")
    }


def test_a_borrowed_symbol_belongs_to_the_chain_it_was_put_on(ask):
    assert (
        len(ask({"chain": "polygon", "nft": {"nft": "BAYC"}}))
        == len(balances("polygon:BAYC"))
        == 250
    )
