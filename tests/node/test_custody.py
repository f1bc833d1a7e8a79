"""What a contract never logged: mints by other events, and by none; found by custody, by senders and by the supply."""

from __future__ import annotations

import contextlib

import pytest

from nbext import connect
from nbext import embedded as service
from nbext.core.addresses import checksummed
from nbext.engine.open import open_dataset
from nbext.settings import Settings
from tests.node.conftest import said
from tests.node.test_chain import STIR, fixture_of_local, pytestmark  # noqa: F401  the marks are this module's too

# Another event: a block without any has a filter that says nothing.
OPENED = """
event Opened:
    number: uint256
"""
MINTED = """
event ConsecutiveTransfer:
    from_id: indexed(uint256)
    to_id: uint256
    sender: indexed(address)
    receiver: indexed(address)
"""
MINT = """
@external
def mint(count: uint256, logged: uint256):
    receiver: address = self._wallet(0)
    for i: uint256 in range(count, bound=500):
        self.owners[self.minted + i] = receiver
    if logged == 1:
        log ConsecutiveTransfer(
            from_id=self.minted, to_id=self.minted + count - 1, sender=empty(address), receiver=receiver)
    else:
        log Opened(number=count)
    self.minted += count
    self.totalSupply += count
    self.balanceOf[receiver] += count

@external
def sell(first: uint256, count: uint256):
    for i: uint256 in range(count, bound=500):
        sender: address = self.owners[first + i]
        receiver: address = self._wallet(1 + i % 59)
        self.owners[first + i] = receiver
        self.balanceOf[sender] -= 1
        self.balanceOf[receiver] += 1
        log Transfer(sender=sender, receiver=receiver, token_id=first + i)
"""
PREMINTED = """
    self.balanceOf[self._wallet(7)] = 100
    self.totalSupply = 100
    log Opened(number=100)
"""


@pytest.fixture(scope="module")
def local():
    return fixture_of_local()


@pytest.fixture(scope="module")
def beasts(local):
    """The source of a collection that mints many at once, with a log or without one."""
    return local.BEASTS.replace("balanceOf:", OPENED.lstrip() + MINTED + "\nbalanceOf:", 1) + MINT


@contextlib.contextmanager
def answering(data):
    try:
        yield connect(settings=Settings(arguments={"data_dir": str(data)}))
    finally:
        service.start_service(data).stop()


def test_ids_that_one_log_mints_together_are_each_owned(local, beasts, tmp_path):
    with local.LocalChain() as chain:
        contract = chain.deploy(beasts)
        for first in (0, 100):
            chain.send(contract, "mint(uint256,uint256)", 100, 1)
            chain.send(contract, "sell(uint256,uint256)", first, 5)
        lines = said(chain, tmp_path, contracts=(contract,))
        assert lines[-1] == (
            f"BEAST ({checksummed(contract)}): 6 of 6 balances equal the chain's at block {chain.head}, and 20 of 20 "
            "token ids have its owner."
        )
        with answering(tmp_path) as client:
            rows = client.execute_segment({"nft": {"nft": contract}}, limit=100)
            assert rows.attrs["nbext"]["warnings"] == []
            counts = dict(zip(rows["address"], rows.iloc[:, 1].tolist(), strict=True))
            assert counts == {local.wallet(0): 190} | {local.wallet(n): 2 for n in range(1, 6)}
            for number in (0, 4, 5, 104, 199):
                owner = client.execute_segment(
                    {"nft": {"nft": contract, "tokenIds": [str(number)]}}, limit=9
                )
                assert owner["address"].tolist() == [
                    chain.ask(contract, "ownerOf(uint256)", number, answer="address")
                ]
            assert client.nfts("ethereum", contract).attrs["nbext"]["warnings"] == []


def test_mints_without_a_log_are_said_by_the_fetch_and_by_each_answer(local, beasts, tmp_path):
    with local.LocalChain() as chain:
        contract = chain.deploy(beasts)
        chain.send(contract, "mint(uint256,uint256)", 100, 0)
        chain.send(contract, "sell(uint256,uint256)", 0, 95)
        lines = said(chain, tmp_path, contracts=(contract,))
        first = chain.head - 1
        missing = "95 of 95 ids were never seen to arrive, so mints are missing"
        # Of 59 wallets that hold and one that sent, only the sender has more.
        assert lines[-1] == (
            f"BEAST ({checksummed(contract)}): 19 of 20 balances equal the chain's at block {chain.head}, and 20 of 20 "
            f"token ids have its owner. {missing}. "
            "Its totalSupply is 100 of the smallest unit, and 0 by its transfers. It moves balances without a "
            f"Transfer, first in block {first}: it rebases, takes a fee on transfer, or wraps ether (--deposits reads "
            "those logs). Answers about it are approximate."
        )
        assert (
            "95 token ids left wallets that never received them: their mints are missing." in lines
        )
        differs = (
            f"BEAST on ethereum: 1 of 20 balances differed from the contract's own at block {chain.head}; its "
            f"totalSupply at block {chain.head} was 100, and 0 by its transfers: it changes balances without a "
            "transfer, as tokens do that rebase or take a fee. Its amounts are approximate."
        )
        notes = [f"BEAST on ethereum: transfers are missing: {missing}.", differs]
        with answering(tmp_path) as client:
            rows = client.execute_segment({"nft": {"nft": contract}}, limit=100)
            assert rows.attrs["nbext"]["warnings"] == notes
            assert client.nfts("ethereum", contract).attrs["nbext"]["warnings"] == notes
            counted = client.execute_segment({"nft": {"nft": contract}}, limit=0)
            assert counted.attrs["nbext"]["warnings"] == notes


SWAP = """
@external
def swap(first: uint256, second: uint256):
    owner: address = self.owners[first]
    self.owners[first] = self.owners[second]
    self.owners[second] = owner
    log Opened(number=first)
"""


def test_token_ids_that_change_hands_without_a_log_are_said_though_each_balance_is_equal(
    local, beasts, tmp_path
):
    with local.LocalChain() as chain:
        contract = chain.deploy(beasts + SWAP)
        chain.send(contract, "mint(uint256,uint256)", 12, 1)
        chain.send(contract, "sell(uint256,uint256)", 0, 12)
        chain.mine(2)
        chain.send(contract, "swap(uint256,uint256)", 3, 4)
        swapped = chain.head
        chain.mine(2)
        lines = said(chain, tmp_path, contracts=(contract,))
        assert lines[-1] == (
            f"BEAST ({checksummed(contract)}): 13 of 13 balances equal the chain's at block {chain.head}, and 10 of 12 "
            f"token ids have its owner. It moves balances without a Transfer, first in block {swapped}: it rebases, "
            "takes a fee on transfer, or wraps ether (--deposits reads those logs). Answers about it are approximate."
        )
        note = (
            f"BEAST on ethereum: 2 of 12 token ids had another owner at block {chain.head}: it changes balances "
            "without a transfer, as tokens do that rebase or take a fee. Its amounts are approximate."
        )
        with answering(tmp_path) as client:
            rows = client.execute_segment({"nft": {"nft": contract}}, limit=100)
            assert rows.attrs["nbext"]["warnings"] == [note]
            assert client.nfts("ethereum", contract).attrs["nbext"]["warnings"] == [note]
        # Back again: the next comparison finds nothing, and nothing is said any more.
        chain.send(contract, "swap(uint256,uint256)", 3, 4)
        lines = said(chain, tmp_path, contracts=(contract,))
        assert lines[-1].endswith("and 12 of 12 token ids have its owner.")
        with answering(tmp_path) as client:
            rows = client.execute_segment({"nft": {"nft": contract}}, limit=100)
            assert rows.attrs["nbext"]["warnings"] == []


def test_a_supply_that_differs_is_said_though_each_balance_that_is_known_is_equal(local, tmp_path):
    source = local.COIN.replace("    self.fee = fee\n", "    self.fee = fee" + PREMINTED)
    source = source.replace("balanceOf:", OPENED.lstrip() + "\nbalanceOf:", 1)
    source += """
@external
def give(amount: uint256):
    for n: uint256 in range(4):
        self.balanceOf[self._wallet(n)] += 1
        self.totalSupply += 1
        log Transfer(sender=empty(address), receiver=self._wallet(n), value=1)
"""
    with local.LocalChain() as chain:
        coin = chain.deploy(source, 0)
        deployed = chain.head
        chain.send(coin, "give(uint256)", 1)
        lines = said(chain, tmp_path, contracts=(coin,))
        assert lines[-1] == (
            f"COIN ({checksummed(coin)}): 4 of 4 balances equal the chain's at block {chain.head}. Its totalSupply is "
            "104 of the smallest unit, and 4 by its transfers. It moves balances without a Transfer, first in block "
            f"{deployed}: it rebases, takes a fee on transfer, or wraps ether (--deposits reads those logs). Answers "
            "about it are approximate."
        )
        note = (
            f"COIN on ethereum: its totalSupply at block {chain.head} was 0.000000000000000104, and "
            "0.000000000000000004 by its transfers: it changes balances without a transfer, as tokens do that rebase "
            "or take a fee. Its amounts are approximate."
        )
        with answering(tmp_path) as client:
            rows = client.execute_segment({"token": {"token": coin}}, limit=100)
            assert rows.attrs["nbext"]["warnings"] == [note]
            assert client.tokens("ethereum", coin).attrs["nbext"]["warnings"] == [note]


def test_the_standard_that_logs_show_is_kept_and_one_that_they_do_not_show_is_inferred(
    local, tmp_path
):
    """Contracts that do not say it: ids as topics, ERC1155's events, and a collection that indexes nothing."""
    silent = ("supportsInterface", "supports_interface")
    sources = [
        source.replace(*silent) for source in (local.BEASTS, local.ITEMS, local.BEASTS, local.COIN)
    ]
    sources[2] = sources[2].replace("indexed(", "(")
    sources[3] = sources[3].replace("decimals: public(constant(uint8)) = 18", "")
    with local.LocalChain() as chain:
        contracts = [chain.deploy(source, *[0] * (source is sources[3])) for source in sources]
        for seed in range(3):
            for contract in contracts:
                chain.send(contract, STIR, seed, 12 if contract == contracts[1] else 60)
            said(chain, tmp_path, contracts=contracts, check=0)
        # Nothing more of any: what is known of them stays.
        chain.mine(3)
        said(chain, tmp_path, contracts=contracts, check=0)
        dataset = open_dataset(tmp_path)
        try:
            found = [dataset.catalog.contract(1, contract) for contract in contracts]
        finally:
            dataset.close()
        assert [(one.standard, one.inferred, one.unseen) for one in found] == [
            ("ERC721", False, 0),
            ("ERC1155", False, 0),
            ("ERC721", True, 0),
            ("ERC20", False, 0),
        ]
