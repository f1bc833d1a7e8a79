"""A node made of a table: it answers at once, refuses in a provider's words, or lies as it is told to.

Its chain is made up, with real bloom filters: an ERC20 coin that wallets send around, and an ERC1155 collection.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from Crypto.Hash import keccak

from nbext.node.contracts import TRANSFER, TRANSFER_BATCH
from tests.node.refusals import Refused

COIN, ITEMS = "0x" + "c0" * 20, "0x" + "1e" * 20
KEY = "a-key-that-nobody-may-see-0123456789"
ZERO = "0x" + "0" * 40
Answer = tuple[int, dict[str, str], bytes]


def word(value: int | str) -> str:
    """Return a number or an address as 32 bytes of hex."""
    return f"{int(value, 16) if isinstance(value, str) else value:064x}"


def bloom_of(texts: list[str]) -> int:
    """Return the filter of a block that holds these addresses and topics."""
    bits = 0
    for text in texts:
        digest = keccak.new(digest_bits=256, data=bytes.fromhex(text[2:])).digest()
        for at in (0, 2, 4):
            bits |= 1 << (int.from_bytes(digest[at : at + 2]) % 2048)
    return bits


class Chain:
    """Blocks and logs of a made-up chain. ``fork`` tells the hashes of two branches apart from a block on."""

    def __init__(
        self,
        blocks: int = 400,
        seed: int = 1,
        *,
        fork: int = 0,
        branch: str = "",
        time: Callable[[int], int] = lambda number: 1_600_000_000 + 12 * number,
    ) -> None:
        draw = random.Random(seed)
        self.blocks, self._fork, self._branch, self.time = blocks, fork, branch, time
        self.logs: dict[int, list[dict[str, Any]]] = {}
        self.balances: dict[str, int] = {}
        self._headers: dict[int, dict[str, Any]] = {}
        for number in range(1, blocks + 1):
            if branch and number == fork:
                draw = random.Random(f"{seed}{branch}")
            for index in range(draw.choice((0, 0, 1, 1, 2))):
                self._coin(draw, number, index * 3)
            if draw.random() < 0.05:
                self._items(draw, number, 90)

    def hash(self, number: int) -> str:
        """Return a block's hash."""
        branch = self._branch if number >= self._fork else ""
        return "0x" + keccak.new(digest_bits=256, data=f"{branch}{number}".encode()).hexdigest()

    def header(self, number: int) -> dict[str, Any] | None:
        """Return a block; None beyond the last."""
        if not 0 <= number <= self.blocks:
            return None
        if number not in self._headers:
            self._headers[number] = self._header(number)
        return self._headers[number]

    def _header(self, number: int) -> dict[str, Any]:
        logs = self.logs.get(number, [])
        bloom = bloom_of([text for log in logs for text in (log["address"], *log["topics"])])
        return {
            "number": hex(number),
            "hash": self.hash(number),
            "parentHash": self.hash(number - 1),
            "timestamp": hex(self.time(number)),
            "logsBloom": f"0x{bloom:0512x}",
            "transactions": [f"0x{number:064x}"] if number else [],
        }

    def balance(self, wallet: str, until: int) -> int:
        """Return what a wallet has of the coin after a block; the zero address what it minted, below zero."""
        moves = [
            (int(log["data"], 16), *(topic[-40:] == wallet[2:] for topic in log["topics"][1:]))
            for number, logs in self.logs.items()
            for log in logs
            if number <= until and log["address"] == COIN
        ]
        return sum(amount * (received - sent) for amount, sent, received in moves)

    def asked(self, filter_: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the logs of a filter."""
        addresses = (
            [filter_["address"]] if isinstance(filter_["address"], str) else filter_["address"]
        )
        first, last = int(filter_["fromBlock"], 16), int(filter_["toBlock"], 16)
        return [
            log
            for number in range(first, last + 1)
            for log in self.logs.get(number, ())
            if log["address"] in addresses and log["topics"][0] in filter_["topics"][0]
        ]

    def rows(self, first: int = 0, last: int = 10**9) -> int:
        """Return how many rows the logs of a range of blocks are."""
        return sum(
            6 if log["address"] == ITEMS else 1
            for number, logs in self.logs.items()
            for log in logs
            if first <= number <= last
        )

    def move(
        self, number: int, index: int, address: str, ends: tuple[str, str], value: int
    ) -> None:
        """Add a Transfer: of an amount, or of a token id, which is a topic, where it is none of the coin."""
        topics = [TRANSFER, *("0x" + word(each) for each in ends)]
        if address == COIN:
            self._log(number, index, address, topics, "0x" + word(value))
        else:
            self._log(number, index, address, [*topics, "0x" + word(value)], "0x")

    def _coin(self, draw: random.Random, number: int, index: int) -> None:
        sender, receiver = (f"0x{draw.randrange(16, 60):040x}" for _ in range(2))
        has = self.balances.get(sender, 0)
        if not has or draw.random() < 0.3:
            sender, amount = ZERO, draw.randrange(1, 10**24)
        else:
            amount = draw.randrange(has + 1)
            self.balances[sender] -= amount
        self.balances[receiver] = self.balances.get(receiver, 0) + amount
        self.move(number, index, COIN, (sender, receiver), amount)

    def _items(self, draw: random.Random, number: int, index: int) -> None:
        receiver = f"0x{draw.randrange(16, 60):040x}"
        words = [64, 64 + 32 * 7, 6, *range(6), 6, *(draw.randrange(1, 9) for _ in range(6))]
        self._log(
            number,
            index,
            ITEMS,
            [TRANSFER_BATCH, *("0x" + word(each) for each in (ZERO, ZERO, receiver))],
            "0x" + "".join(map(word, words)),
        )

    def _log(self, number: int, index: int, address: str, topics: list[str], data: str) -> None:
        branch = self._branch if number >= self._fork else ""
        tx = keccak.new(digest_bits=256, data=f"{branch}{number}/{index}".encode())
        self.logs.setdefault(number, []).append(
            {
                "address": address,
                "topics": topics,
                "data": data,
                "blockNumber": hex(number),
                "blockHash": self.hash(number),
                "transactionHash": "0x" + tx.hexdigest(),
                "transactionIndex": "0x0",
                "logIndex": hex(index),
                "removed": False,
            }
        )


class FaultNode:
    """A server over a `Chain`; a context.

    Parameters
    ----------
    refuse
        Returns how a request (method and params) is refused, or None.
    lie
        Returns another result in place of a true one.
    batches
        The longest batch that is taken; 0 for none.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        refuse: Callable[[str, list[Any]], Refused | None] = lambda method, params: None,
        lie: Callable[[str, list[Any], Any], Any] = lambda method, params, true: true,
        batches: int = 1000,
        chain_id: int = 1,
        headers: dict[str, str] | None = None,
        finalized: int | None = None,
    ) -> None:
        self.chain, self.refuse, self.lie, self.batches = chain, refuse, lie, batches
        self.chain_id, self.headers, self.finalized = chain_id, headers or {}, finalized
        self.requests: list[tuple[str, list[Any]]] = []
        self.posts = 0
        # When each post came, and how many calls it had.
        self.arrived: list[tuple[float, int]] = []
        # The client's port and the calls of each answer that was sent whole.
        self.sent: list[tuple[int, Any]] = []
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = (
                1 << 16
            )  # headers and body in one packet: else each answer waits 40 ms for an acknowledgement

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                node.posts += 1
                node.arrived.append((time.monotonic(), len(body) if isinstance(body, list) else 1))
                status, headers, raw = node.answer(body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
                self.wfile.flush()
                node.sent.append((self.client_address[1], body))

            def log_message(self, *words: Any) -> None:
                """Keep quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Say nothing of clients that went away."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v3/{KEY}?token={KEY}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> FaultNode:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def logs_asked(self) -> list[tuple[int, int]]:
        """Return the ranges of blocks whose logs were asked for."""
        return [
            (int(params[0]["fromBlock"], 16), int(params[0]["toBlock"], 16))
            for method, params in self.requests
            if method == "eth_getLogs"
        ]

    def answer(self, body: Any) -> Answer:
        """Return status, headers and body."""
        many = isinstance(body, list)
        if many and len(body) > self.batches:
            return (
                200,
                {},
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": None,
                        "error": {
                            "code": -32600,
                            "message": f"batch too large: at most {self.batches}",
                        },
                    }
                ).encode(),
            )
        answers, status, headers = [], 200, {}
        for one in body if many else [body]:
            self.requests.append((one["method"], one["params"]))
            refused = self.refuse(one["method"], one["params"])
            if refused is not None:
                status, headers = (refused.status if not many else 200), self.headers
                if refused.message.startswith("<") or not refused.message:
                    return refused.status, headers, refused.message.encode()
                error = {"code": refused.code, "message": refused.message}
                error |= {"data": refused.data} if refused.data else {}
                answers.append({"jsonrpc": "2.0", "id": one["id"], "error": error})
                continue
            result = self.lie(
                one["method"], one["params"], self._result(one["method"], one["params"])
            )
            answers.append({"jsonrpc": "2.0", "id": one["id"], "result": result})
        if many:
            random.Random(self.posts).shuffle(answers)  # the standard promises no order
        return status, headers, json.dumps(answers if many else answers[0]).encode()

    def _result(self, method: str, params: list[Any]) -> Any:
        return getattr(self, f"_{method}")(*params)

    def _eth_chainId(self) -> str:  # noqa: N802  the method's name
        return hex(self.chain_id)

    def _eth_blockNumber(self) -> str:  # noqa: N802
        return hex(self.chain.blocks)

    def _eth_getBlockByNumber(self, number: str, full: bool) -> Any:  # noqa: N802
        if number == "finalized":
            return None if self.finalized is None else self.chain.header(self.finalized)
        return self.chain.header(int(number, 16))

    def _eth_getLogs(self, asked: dict[str, Any]) -> Any:  # noqa: N802
        return self.chain.asked(asked)

    def _eth_getBlockReceipts(self, number: str) -> Any:  # noqa: N802
        return [{"logs": self.chain.logs.get(int(number, 16), [])}]

    def _eth_getTransactionByHash(self, found: str) -> Any:  # noqa: N802
        return {
            "hash": found,
            "type": "0x2",
            "from": "0x" + "5e" * 20,
            "nonce": hex(int(found, 16) - 1),
        }

    def _eth_getTransactionCount(self, address: str, block: str) -> str:  # noqa: N802
        return block  # a transaction in each block

    def _eth_getCode(self, address: str, block: str) -> str:  # noqa: N802
        return "0x6001" if block == "latest" or int(block, 16) >= 1 else "0x"

    def _eth_call(self, call: dict[str, Any], block: str) -> str:
        data = call["data"]
        until = self.chain.blocks if block == "latest" else int(block, 16)
        if data.startswith(("0x70a08231", "0x18160ddd")) and call["to"] == COIN:
            wallet, sign = ("0x" + data[-40:], 1) if data.startswith("0x7") else (ZERO, -1)
            return "0x" + word(sign * self.chain.balance(wallet, until))
        if data.startswith("0x00fdd58e"):
            owner, number = "0x" + word("0x" + data[34:74]), int(data[-64:], 16)
            return "0x" + word(
                sum(
                    int(log["data"][2 + 64 * (10 + number) : 2 + 64 * (11 + number)], 16)
                    for logs in self.chain.logs.values()
                    for log in logs
                    if log["address"] == ITEMS and log["topics"][3] == owner
                    if int(log["blockNumber"], 16) <= until
                )
            )
        if data.startswith("0x313ce567") and call["to"] == COIN:
            return "0x" + word(18)
        if data.startswith("0x01ffc9a7") and call["to"] == ITEMS:
            return "0x" + word(int("d9b67a26" in data))
        if data.startswith("0x95d89b41") and call["to"] == COIN:
            return "0x" + word(32) + word(4) + b"COIN".hex().ljust(64, "0")
        return "0x"
