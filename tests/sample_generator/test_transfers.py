"""The made-up transfers make sense as chain data does, and come out the same every time."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pyarrow.parquet as pq
import pytest

from nbext.engine.sample.unpack import MANIFEST, PREPARED
from nbext.engine.schema import TABLES
from tests.sample_generator.cast import DEAD, ROLES, ZERO, wallets
from tests.sample_generator.diary import by_key
from tests.sample_generator.prepare import prepare
from tests.sample_generator.slots import END, LAST_SLOT, PACES, block, timestamp
from tests.sample_generator.transfers import written


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_the_shipped_table_is_what_the_code_generates(regenerated, name):
    assert pq.read_table(PREPARED / f"{name}.parquet") == pq.read_table(
        regenerated / f"{name}.parquet"
    )


@pytest.mark.slow
def test_the_shipped_manifest_is_what_the_code_generates(regenerated):
    assert json.loads((PREPARED / MANIFEST).read_text()) == json.loads(
        (regenerated / MANIFEST).read_text()
    )


def test_nobody_spends_what_he_does_not_have():
    held = defaultdict(int)
    for transfer in written():
        token_id = None if transfer.contract.standard == "ERC20" else transfer.value
        amount = transfer.value if token_id is None else transfer.count
        held[transfer.contract, token_id, transfer.sender] -= amount
        held[transfer.contract, token_id, transfer.recipient] += amount
        assert transfer.sender == ZERO or held[transfer.contract, token_id, transfer.sender] >= 0


def test_each_piece_of_a_collection_has_one_owner():
    owner = {}
    for transfer in written():
        if transfer.contract.standard == "ERC721":
            piece = (transfer.contract, transfer.value)
            assert owner.get(piece, ZERO) == transfer.sender
            owner[piece] = transfer.recipient


def test_every_amount_and_id_is_a_uint256_and_the_largest_one_occurs():
    values = [transfer.value for transfer in written()]
    assert (min(values), max(values)) == (0, 2**256 - 1)


def test_every_contract_has_transfers_and_no_two_share_a_key():
    moved = Counter(transfer.contract for transfer in written())
    assert set(by_key().values()) == set(moved)


def test_the_year_ends_at_a_fixed_instant_on_every_chain():
    last = {transfer.contract.chain: transfer.slot for transfer in written()}
    assert last == dict.fromkeys(PACES, LAST_SLOT)
    assert (timestamp(LAST_SLOT), timestamp(0)) == (END, END - LAST_SLOT * 2_220)
    assert {chain: block(chain, LAST_SLOT) for chain in PACES} == {
        c: pace.last_block for c, pace in PACES.items()
    }


def test_all_roles_take_part_and_no_two_wallets_share_an_address():
    everyone = [wallet for role in ROLES for wallet in wallets(role)]
    assert len(set(everyone)) == len(everyone) == sum(ROLES.values())
    seen = {side for transfer in written() for side in (transfer.sender, transfer.recipient)}
    present = {role: sum(wallet in seen for wallet in wallets(role)) for role in ROLES}
    assert [role for role, count in present.items() if count < ROLES[role] * 6 // 10] == []


def test_there_are_mints_burns_self_transfers_and_transfers_of_nothing():
    kinds = Counter()
    for transfer in written():
        kinds["mint"] += transfer.sender == ZERO
        kinds["burn"] += transfer.recipient in (ZERO, DEAD)
        kinds["to oneself"] += transfer.sender == transfer.recipient
        kinds["of nothing"] += transfer.contract.standard == "ERC20" and transfer.value == 0
    assert {kind: count >= 50 for kind, count in kinds.items()} == dict.fromkeys(kinds, True)
