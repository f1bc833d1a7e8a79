"""The made-up transfers of the benchmarks: the same every time, and nobody sends what they do not have."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from tests.benchmarks import generate
from tests.benchmarks.generate import World, chunks

SMALL = World(rows=4_000, contracts=30, wallets=200)
ZERO = "0x" + "0" * 40


def rows(world):
    return pa.concat_tables(chunks(world)).to_pylist()


def test_the_same_seed_makes_the_same_rows_and_another_seed_others():
    assert rows(SMALL) == rows(World(4_000, contracts=30, wallets=200))
    assert rows(SMALL) != rows(World(4_000, contracts=30, wallets=200, seed=2))


def test_rows_do_not_hang_on_how_many_are_made_at_once(monkeypatch):
    whole = rows(SMALL)
    monkeypatch.setattr(generate, "CHUNK", 700)
    assert rows(SMALL) == whole


def test_nobody_sends_tokens_or_ids_that_they_do_not_have():
    collections = {SMALL.contract_address(rank) for rank in range(30) if World.is_collection(rank)}
    balances, owners = defaultdict(int), {}
    for row in rows(SMALL):
        contract, sender, value = row["token_address"], row["from_address"], int(row["value"])
        if contract in collections:
            assert owners.get((contract, value), ZERO) == sender
            owners[contract, value] = row["to_address"]
            continue
        assert value > 0
        assert sender == ZERO or balances[contract, sender] >= value
        balances[contract, sender] -= value
        balances[contract, row["to_address"]] += value
    assert len(owners) > 100
    assert len(balances) > 1_000


def test_few_contracts_have_most_of_the_transfers():
    counts = defaultdict(int)
    for row in rows(SMALL):
        counts[row["token_address"]] += 1
    assert counts[SMALL.contract_address(0)] > 4 * counts[SMALL.contract_address(9)] > 0
