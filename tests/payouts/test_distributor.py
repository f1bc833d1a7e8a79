"""Distributors on a chain of this machine pay what a folder's proofs say, once, and nothing else."""

from __future__ import annotations

import json
import random

import pytest

import nbext
from nbext import connect
from nbext.embedded import start_service
from nbext.node.rpc import Node
from nbext.payouts.folder import FORMAT, Claims, write_files
from nbext.settings import Secret, Settings
from tests.seed import gate_seed

pytest.importorskip("eth_tester")
pytest.importorskip("vyper")
pytestmark = pytest.mark.node

# Only where the extra `evm` is installed.
from notebooks.local_chain import COIN, LocalChain  # noqa: E402
from tests.node.test_chain import fetched  # noqa: E402

# What a distributor is: claims that fold into the root are paid once. OpenZeppelin's leaves are hashed twice.
DISTRIBUTOR = """# pragma version ^0.4.0
root: bytes32
paid: public(HashMap[address, uint256])

@deploy
def __init__(root: bytes32):
    self.root = root

@internal
def _pay(leaf: bytes32, account: address, amount: uint256, proof: DynArray[bytes32, 32]):
    node: bytes32 = leaf
    for beside: bytes32 in proof:
        if convert(node, uint256) < convert(beside, uint256):
            node = keccak256(concat(node, beside))
        else:
            node = keccak256(concat(beside, node))
    assert node == self.root, "no such claim"
    assert self.paid[account] == 0, "paid already"
    self.paid[account] = amount

@external
def claim(account: address, amount: uint256, proof: DynArray[bytes32, 32]) -> bool:
    self._pay(keccak256(keccak256(abi_encode(account, amount))), account, amount, proof)
    return True

@external
def claimIndexed(index: uint256, account: address, amount: uint256, proof: DynArray[bytes32, 32]) -> bool:
    packed: Bytes[84] = concat(
        convert(index, bytes32), slice(convert(account, bytes32), 12, 20), convert(amount, bytes32))
    self._pay(keccak256(packed), account, amount, proof)
    return True
"""
FORMS = {
    "standard": ("claim(address,uint256,bytes32[])", "root", "proof"),
    "indexed": ("claimIndexed(uint256,address,uint256,bytes32[])", "indexed_root", "indexed_proof"),
}


@pytest.fixture(scope="module")
def chain():
    with LocalChain() as found:
        yield found


@pytest.fixture(params=[1, 2, 3, 60], ids="{} claims".format)
def folder(request, tmp_path):
    draw = random.Random(gate_seed() + request.param)
    drawn = {
        f"0x{draw.getrandbits(160):040x}": draw.getrandbits(90) + 1 for _ in range(request.param)
    }
    claims = Claims(dict(sorted(drawn.items())))
    write_files(tmp_path, claims, {"format": FORMAT, "token": None, **claims.outcome()}, {})
    return tmp_path


def forgeries(arguments, others):
    """Each claim beside the right one: another wallet or amount, and proofs that lack, add or change something."""
    *front, address, amount, proof = arguments
    yield [*front, address, amount + 1, proof]
    yield [*front, f"0x{int(address, 16) ^ 1:040x}", amount, proof]
    yield [*front, address, amount, [*proof, bytes(32)]]
    yield [*front, address, amount, others[0]]
    if front:
        yield [front[0] + 1, address, amount, proof]
    if proof:
        yield [*front, address, amount, proof[1:]]
        yield [*front, address, amount, [*proof[:-1], bytes(32)]]


@pytest.mark.parametrize("form", FORMS)
def test_a_distributor_pays_each_claim_once_and_no_forged_one(chain, folder, form):
    signature, root, name = FORMS[form]
    rows = [line.split(",") for line in (folder / "claims.csv").read_text().splitlines()[1:]]
    some = random.Random(gate_seed()).sample(rows, min(len(rows), 6))
    proofs = {address: nbext.proof(folder, address) for _, address, _ in some}
    distributor = chain.deploy(DISTRIBUTOR, int(proofs[some[0][1]][root], 16))
    for index, address, amount in some:
        path = [bytes.fromhex(one[2:]) for one in proofs[address][name]]
        # A proof of the other form is none of this one; of a tree of one claim both are empty.
        other = [
            bytes.fromhex(one[2:])
            for one in proofs[address][FORMS["indexed" if form == "standard" else "standard"][2]]
        ]
        arguments = [*([int(index)] if form == "indexed" else []), address, int(amount), path]
        for forged in forgeries(arguments, [other or [bytes(32)]]):
            assert chain.ask(distributor, signature, *forged, answer="bool") is None
        assert chain.ask(distributor, "paid(address)", address) == 0
        chain.send(distributor, signature, *arguments)
        assert chain.ask(distributor, "paid(address)", address) == int(amount)
        assert chain.ask(distributor, signature, *arguments, answer="bool") is None


def test_what_was_fetched_is_paid_with_the_hash_that_the_chain_has_of_the_block(tmp_path):
    data, found = tmp_path / "data", {}
    with LocalChain() as own:
        coin = own.deploy(COIN, 0)
        own.send(coin, "stir(uint256,uint256)", 1, 60)
        own.mine(2)
        fetched(own, [coin], data)
        client = connect(settings=Settings(arguments={"data_dir": str(data)}))
        for at in (own.head - 2, own.head):
            asked = {"token": {"token": coin}, "asOf": at}
            rows = client.execute_segment(asked, limit="all")
            nbext.payout(rows, 10**6, to=tmp_path / str(at), client=client)
            found[at] = json.loads((tmp_path / f"{at}/manifest.json").read_text())["block_hash"]
        client.close()
        start_service(data).stop()
        node = Node([Secret(own.url)])
        headers = node.batch([("eth_getBlockByNumber", (hex(at), False)) for at in found])
        node.close()
    assert list(found.values()) == [header["hash"] for header in headers]


def test_no_pair_of_nodes_is_taken_for_a_claim(chain, folder):
    """A second preimage: two nodes side by side read as a wallet and an amount, with the rest of a proof."""
    tree = json.loads((folder / "tree.json").read_text())["tree"]
    distributor = chain.deploy(DISTRIBUTOR, int(tree[0], 16))
    for place in range(len(tree) // 2):
        left, right = sorted(tree[2 * place + 1 : 2 * place + 3])
        path, above = [], place
        while above:
            path.append(bytes.fromhex(tree[above + 1 if above % 2 else above - 1][2:]))
            above = (above - 1) // 2
        claim = ["0x" + left[-40:], int(right, 16), path]
        assert chain.ask(distributor, FORMS["standard"][0], *claim, answer="bool") is None
