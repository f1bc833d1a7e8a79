"""A chain on this machine: an EVM with token contracts, behind a JSON-RPC URL. Needs `eth-tester[py-evm]` and `vyper`.

    with LocalChain() as chain:
        coin = chain.deploy(COIN, 0)
        chain.send(coin, "stir(uint256,uint256)", 1, 300)
        ...                                     # chain.url is a node's URL, as providers have them

The contracts move, mint and burn by themselves: `stir(seed, count)` draws so many moves between 60 wallets. What they
store, and not what they log, is what `balanceOf` and `ownerOf` return.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from Crypto.Hash import keccak
from eth_abi import decode, encode
from eth_tester import EthereumTester, PyEVMBackend
from eth_tester.exceptions import TransactionFailed
from vyper import compile_code

WALLETS = 60
_GAS = 28_000_000
# The draws of `stir`: 60 wallets and the zero address are the ends, an eighth each of mints and burns.
_DRAWN = """
@internal
@pure
def _wallet(number: uint256) -> address:
    return convert(convert(keccak256(convert(number % 60, bytes32)), uint256) >> 96, address)
"""
# A fee in percent that a transfer takes without logging it. 0: as the standard has it.
COIN = (
    """# pragma version ^0.4.0
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    value: uint256

balanceOf: public(HashMap[address, uint256])
totalSupply: public(uint256)
name: public(constant(String[32])) = "Local Coin"
symbol: public(constant(String[32])) = "COIN"
decimals: public(constant(uint8)) = 18
fee: uint256

@deploy
def __init__(fee: uint256):
    self.fee = fee
"""
    + _DRAWN
    + """
@external
def stir(seed: uint256, count: uint256):
    for i: uint256 in range(count, bound=500):
        draw: uint256 = convert(keccak256(abi_encode(seed, i)), uint256)
        sender: address = self._wallet(draw)
        receiver: address = self._wallet(draw >> 32)
        amount: uint256 = self.balanceOf[sender] * ((draw >> 96) % 101) // 100
        kind: uint256 = (draw >> 64) % 8
        if amount == 0 or kind == 0:
            amount = (draw >> 128) % 10**24
            self.totalSupply += amount
            self.balanceOf[receiver] += amount
            log Transfer(sender=empty(address), receiver=receiver, value=amount)
        elif kind == 1:
            self.totalSupply -= amount
            self.balanceOf[sender] -= amount
            log Transfer(sender=sender, receiver=empty(address), value=amount)
        else:
            self.balanceOf[sender] -= amount
            self.balanceOf[receiver] += amount - amount * self.fee // 100
            log Transfer(sender=sender, receiver=receiver, value=amount)
"""
)
# As tokens of 2016 were: nothing is indexed, and name and symbol are bytes32.
OLD_COIN = (
    COIN.replace("indexed(address)", "address")
    .replace("String[32]", "bytes32")
    .replace('"Local Coin"', "0x" + b"Old Coin".hex().ljust(64, "0"))
    .replace('"COIN"', "0x" + b"OLD".hex().ljust(64, "0"))
)
# As wrapped ether: mints and burns are no transfers.
WRAPPED = (
    COIN.replace(
        "balanceOf:",
        """event Deposit:
    receiver: indexed(address)
    value: uint256

event Withdrawal:
    sender: indexed(address)
    value: uint256

balanceOf:""",
        1,
    )
    .replace("Transfer(sender=empty(address), ", "Deposit(")
    .replace("Transfer(sender=sender, receiver=empty(address),", "Withdrawal(sender=sender,")
    .replace("COIN", "WRAP")
)
BEASTS = (
    """# pragma version ^0.4.0
event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    token_id: indexed(uint256)

balanceOf: public(HashMap[address, uint256])
owners: HashMap[uint256, address]
minted: public(uint256)
totalSupply: public(uint256)
name: public(constant(String[32])) = "Local Beasts"
symbol: public(constant(String[32])) = "BEAST"

@view
@external
def ownerOf(token_id: uint256) -> address:
    assert self.owners[token_id] != empty(address), "no such token"
    return self.owners[token_id]

@view
@external
def supportsInterface(wanted: bytes4) -> bool:
    return wanted in [0x01ffc9a7, 0x80ac58cd]
"""
    + _DRAWN
    + """
@external
def stir(seed: uint256, count: uint256):
    for i: uint256 in range(count, bound=500):
        draw: uint256 = convert(keccak256(abi_encode(seed, i)), uint256)
        receiver: address = self._wallet(draw)
        token_id: uint256 = (draw >> 32) % max(self.minted, 1)
        kind: uint256 = (draw >> 64) % 8
        sender: address = self.owners[token_id]
        if sender == empty(address) or kind < 3:
            token_id = self.minted
            sender = empty(address)
            self.minted += 1
            self.totalSupply += 1
        else:
            self.balanceOf[sender] -= 1
        if sender != empty(address) and kind == 3:
            receiver = empty(address)
            self.totalSupply -= 1
        else:
            self.balanceOf[receiver] += 1
        self.owners[token_id] = receiver
        log Transfer(sender=sender, receiver=receiver, token_id=token_id)
"""
)
ITEMS = (
    """# pragma version ^0.4.0
event TransferSingle:
    operator: indexed(address)
    sender: indexed(address)
    receiver: indexed(address)
    token_id: uint256
    amount: uint256

event TransferBatch:
    operator: indexed(address)
    sender: indexed(address)
    receiver: indexed(address)
    ids: DynArray[uint256, 8]
    amounts: DynArray[uint256, 8]

balanceOf: public(HashMap[address, HashMap[uint256, uint256]])
name: public(constant(String[32])) = "Local Items"
symbol: public(constant(String[32])) = "ITEM"

@view
@external
def supportsInterface(wanted: bytes4) -> bool:
    return wanted in [0x01ffc9a7, 0xd9b67a26]
"""
    + _DRAWN
    + """
@internal
def _move(sender: address, receiver: address, token_id: uint256, amount: uint256):
    if sender != empty(address):
        self.balanceOf[sender][token_id] -= amount
    if receiver != empty(address):
        self.balanceOf[receiver][token_id] += amount

@external
def mint_one(receiver: address, token_id: uint256, amount: uint256):
    self._move(empty(address), receiver, token_id, amount)
    log TransferSingle(operator=msg.sender, sender=empty(address), receiver=receiver, token_id=token_id, amount=amount)

@external
def stir(seed: uint256, count: uint256):
    for i: uint256 in range(count, bound=500):
        draw: uint256 = convert(keccak256(abi_encode(seed, i)), uint256)
        sender: address = self._wallet(draw)
        receiver: address = self._wallet(draw >> 32)
        kind: uint256 = (draw >> 64) % 8
        if kind == 0:
            sender = empty(address)
        elif kind == 2:
            receiver = empty(address)
        ids: DynArray[uint256, 8] = []
        amounts: DynArray[uint256, 8] = []
        for n: uint256 in range(8):
            # An id may be there twice.
            token_id: uint256 = (draw >> (72 + 8 * n)) % 12
            amount: uint256 = (draw >> (136 + 8 * n)) % 100
            if kind > 1:
                amount = self.balanceOf[sender][token_id] * (amount + 1) // 100
            if kind == 1 or (kind > 1 and amount == 0):
                amount += 1
                self._move(empty(address), sender, token_id, amount)
                log TransferSingle(
                    operator=msg.sender, sender=empty(address), receiver=sender, token_id=token_id, amount=amount)
            self._move(sender, receiver, token_id, amount)
            ids.append(token_id)
            amounts.append(amount)
        log TransferBatch(operator=msg.sender, sender=sender, receiver=receiver, ids=ids, amounts=amounts)
"""
)


@cache
def _compiled(source: str) -> bytes:
    return bytes.fromhex(compile_code(source, output_formats=["bytecode"])["bytecode"][2:])


def _hashed(text: str) -> bytes:
    return keccak.new(digest_bits=256, data=text.encode()).digest()


def wallet(number: int) -> str:
    """Return a wallet of the contracts' draws."""
    return "0x" + keccak.new(digest_bits=256, data=number.to_bytes(32)).hexdigest()[:40]


class Refused(Exception):
    """How the node refuses a call: a JSON-RPC code and a message."""


class LocalChain:
    """A chain in this process, and its node on loopback; a context.

    Parameters
    ----------
    most_blocks
        Logs of more blocks than these are refused, as providers refuse them; None for no bound.
    seen
        Called with the method of each call before it is answered.
    """

    def __init__(
        self, *, most_blocks: int | None = None, seen: Callable[[str], None] = lambda method: None
    ) -> None:
        self.most_blocks, self.seen = most_blocks, seen
        genesis = PyEVMBackend.generate_genesis_params(overrides={"timestamp": 1_700_000_000})
        self._tester = EthereumTester(PyEVMBackend(genesis_parameters=genesis))
        self._account = self._tester.get_accounts()[0]
        # It is not for threads.
        self._lock = threading.RLock()
        # By number: what the node answers of each block, and its logs.
        self._blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        self._read()
        self._server = _serve(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v3/a-key-of-the-local-chain"

    def __enter__(self) -> LocalChain:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the node."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def head(self) -> int:
        """The number of the last block."""
        return len(self._blocks) - 1

    def all_logs(self) -> list[dict[str, Any]]:
        """Return all logs, in order, as the node answers them."""
        return [log for _, logs in self._blocks for log in logs]

    def at_once(self) -> threading.RLock:
        """Return a context in which the node answers nothing: what is done in it is one step to those who ask."""
        return self._lock

    def deploy(self, source: str, *fields: int) -> str:
        """Create a contract of some Vyper source, in a block of its own; return its address in lower case."""
        with self._lock:
            return self._sent(
                {"data": _compiled(source) + encode(["uint256"] * len(fields), fields)}
            )

    def send(self, contract: str, signature: str, *fields: Any) -> None:
        """Send a transaction that calls a contract, in a block of its own."""
        with self._lock:
            self._sent({"to": contract, "data": _call_data(signature, fields)})

    def mine(self, blocks: int = 1) -> None:
        """Add empty blocks."""
        with self._lock:
            for _ in range(blocks):
                self._tick()
                self._tester.mine_blocks()
            self._read()

    def snapshot(self) -> Any:
        """Return the moment, to which `revert` takes the chain back."""
        with self._lock:
            return self._tester.take_snapshot()

    def revert(self, moment: Any) -> int:
        """Orphan all blocks since a moment, and return the first of them: those that come then have other hashes."""
        with self._lock:
            self._tester.revert_to_snapshot(moment)
            self._read()
            return self.head + 1

    def ask(
        self,
        contract: str,
        signature: str,
        *fields: Any,
        answer: str = "uint256",
        block: Any = "latest",
    ) -> Any:
        """Return what a contract says; None where it reverts."""
        with self._lock:
            try:
                raw = self._tester.call(
                    {
                        "from": self._account,
                        "to": contract,
                        "gas": _GAS,
                        "data": "0x" + _call_data(signature, fields).hex(),
                    },
                    block,
                )
            except TransactionFailed:
                return None
        return decode([answer], bytes.fromhex(raw[2:]))[0]

    def _tick(self) -> None:
        # Twelve seconds after the last block, whatever the clock says: a run is like another.
        chain = self._tester.backend.chain
        chain.header = chain.header.copy(
            timestamp=self._tester.get_block_by_number("latest")["timestamp"] + 12
        )

    def _sent(self, transaction: dict[str, Any]) -> str:
        self._tick()
        data = "0x" + transaction["data"].hex()
        sent = self._tester.send_transaction(
            {"from": self._account, "gas": _GAS, **transaction, "data": data}
        )
        receipt = self._tester.get_transaction_receipt(sent)
        if receipt["status"] != 1:
            raise RuntimeError("The transaction failed.")
        self._read()
        return str(receipt["contract_address"] or "").lower()

    def _read(self) -> None:
        """Read the blocks that came, and those that a revert has replaced."""
        last = self._tester.get_block_by_number("latest")["number"]
        del self._blocks[last + 1 :]
        while (
            self._blocks
            and self._blocks[-1][0]["hash"] != self._tester.get_block_by_number(self.head)["hash"]
        ):
            self._blocks.pop()
        for number in range(len(self._blocks), last + 1):
            block = self._tester.get_block_by_number(number)
            logs = [
                log
                for sent in block["transactions"]
                for log in self._tester.get_transaction_receipt(sent)["logs"]
            ]
            self._blocks.append((_header(block), [_log(log) for log in logs]))

    # The node's methods.

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one call of JSON-RPC."""
        self.seen(body["method"])
        said: dict[str, Any] = {"jsonrpc": "2.0", "id": body["id"]}
        method = getattr(self, f"_{body['method']}", None)
        if method is None:
            return {
                **said,
                "error": {
                    "code": -32601,
                    "message": f"the method {body['method']} is not available",
                },
            }
        try:
            with self._lock:
                return {**said, "result": method(*body["params"])}
        except Refused as refused:
            return {**said, "error": dict(zip(("code", "message"), refused.args, strict=True))}

    def _eth_chainId(self) -> str:  # noqa: N802  the method's name
        return "0x1"

    def _eth_blockNumber(self) -> str:  # noqa: N802
        return hex(self.head)

    def _eth_getBlockByNumber(self, number: str, full: bool) -> Any:  # noqa: N802
        return (
            self._block(number)[0]
            if number != "finalized" and int(number, 16) <= self.head
            else None
        )

    def _eth_getBlockReceipts(self, number: str) -> Any:  # noqa: N802
        return [{"logs": self._block(number)[1]}]

    def _eth_getLogs(self, asked: dict[str, Any]) -> Any:  # noqa: N802
        first, last = int(asked["fromBlock"], 16), int(asked["toBlock"], 16)
        if self.most_blocks is not None and last - first >= self.most_blocks:
            raise Refused(-32602, f"range {last - first + 1} exceeds limit of {self.most_blocks}")
        of = [asked["address"]] if isinstance(asked["address"], str) else asked["address"]
        return [
            log
            for _, logs in self._blocks[first : last + 1]
            for log in logs
            if log["address"] in of and log["topics"][0] in asked["topics"][0]
        ]

    def _eth_getCode(self, address: str, block: str) -> Any:  # noqa: N802
        return self._tester.get_code(address, self._number(block))

    def _eth_call(self, call: dict[str, Any], block: str) -> Any:
        try:
            return self._tester.call(
                {"from": self._account, "gas": _GAS, **call}, self._number(block)
            )
        except TransactionFailed as failed:
            raise Refused(3, f"execution reverted: {failed}") from None

    def _block(self, number: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return self._blocks[self.head if number == "latest" else int(number, 16)]

    def _number(self, block: str) -> int | str:
        return block if block == "latest" else int(block, 16)


def with_a_coin() -> tuple[LocalChain, str]:
    """Return a new chain with a token of 1,200 transfers in seven blocks, and the token's address."""
    chain = LocalChain()
    coin = chain.deploy(COIN, 0)
    for seed in range(6):
        chain.send(coin, "stir(uint256,uint256)", seed, 200)
    return chain, coin


def _call_data(signature: str, fields: tuple[Any, ...]) -> bytes:
    kinds = signature.partition("(")[2].removesuffix(")")
    return _hashed(signature)[:4] + encode(kinds.split(",") if kinds else [], fields)


def _header(block: dict[str, Any]) -> dict[str, Any]:
    return {
        "number": hex(block["number"]),
        "hash": block["hash"],
        "parentHash": block["parent_hash"],
        "timestamp": hex(block["timestamp"]),
        "logsBloom": f"0x{block['logs_bloom']:0512x}",
        "transactions": [],
    }


def _log(log: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": log["address"].lower(),
        "topics": list(log["topics"]),
        "data": log["data"],
        "blockNumber": hex(log["block_number"]),
        "blockHash": log["block_hash"],
        "transactionHash": log["transaction_hash"],
        "transactionIndex": hex(log["transaction_index"]),
        "logIndex": hex(log["log_index"]),
        "removed": False,
    }


def _serve(chain: LocalChain) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = (
            1 << 16
        )  # headers and body in one packet: else each answer waits 40 ms for an acknowledgement

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answers = [chain.answer(one) for one in (body if isinstance(body, list) else [body])]
            random.shuffle(answers)  # the standard promises no order
            raw = json.dumps(answers if isinstance(body, list) else answers[0]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *words: Any) -> None:
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of clients that were killed."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server
