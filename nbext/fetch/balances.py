"""Whether holders have what the contract says, and token ids their owners, printed and stored; and if not, why.

A token that rebases or takes a fee looks like one of which a node left logs out. The first block at which the data and
the contract part tells them apart: either it has a transfer that is not stored, or it has none.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, starmap
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.dataset import Compared
from nbext.engine.ingest.run import record_compared
from nbext.engine.open import open_dataset
from nbext.errors import NodeError
from nbext.language.language import compile, parse, resolve  # noqa: A004  the step's name
from nbext.language.lookup import missing_mints
from nbext.node.contracts import SUPPLY, balance_of, owner_of, read_numbers
from nbext.node.coverage import Coverage
from nbext.node.ranges import LogFilter, read_range
from nbext.node.rpc import Node, Refusal

if TYPE_CHECKING:
    from nbext.engine.query.answers import Dataset

# More than any contract has, and rows that an answer may have.
_ALL = 30_000_000
_ENDS = ("sender", "recipient")


_LEFT_OUT = "left out"
_MOVES = "it rebases, takes a fee on transfer, or wraps ether (--deposits reads those logs)"
_APPROXIMATE = "Answers about it are approximate."
_AGAIN = "The next fetch reads all blocks of the contract again: use another node."
_UNKNOWN = (
    "unknown",
    f"It moves balances without a Transfer: {_MOVES}. Or the node left logs out: it does not have the old states that "
    f"would show which. {_APPROXIMATE}",
)
# Holders, and token ids, of those that differ, of which the first block is sought at which they do.
_LOOKED_INTO = 3


class _Fact(NamedTuple):
    """What a contract is asked, as the data of the call, and what the data, in such files, says at a block of it."""

    asked: str
    stored: Callable[[int], int]
    files: str = "token_transfers"


@dataclass(frozen=True)
class Balances:
    """The contracts of a fetch: their events and first blocks, and of how many holders balances are compared."""

    node: Node
    coverage: Coverage
    data_dir: Path
    topics: Mapping[str, Sequence[str]]
    firsts: Mapping[str, int]
    check: int

    def verify(self, last: int, say: Callable[[str], None]) -> None:
        """Compare balances of holders with what each contract says at a block that was read; say and store how.

        Raises
        ------
        NodeError
            The node left logs out: nothing of that contract is covered any more.
        """
        # Without the first transfers no balance can be equal.
        whole = [
            address
            for address, topics in self.topics.items()
            if any(
                first == 0 and end >= last for first, end in self.coverage.complete(address, topics)
            )
        ]
        if not self.check or not whole:
            return
        compared, left_out = {}, {}
        with closing(open_dataset(self.data_dir)) as dataset:
            for address in whole:
                line, found = self._compared(dataset, address, last)
                if found:
                    compared[address] = found
                if found and found.cause == _LEFT_OUT:
                    left_out[address] = f"{self.coverage.name_of(address)}: {line}"
                else:
                    say(f"{self.coverage.name_of(address)}: {line}")
        # Answers about those that differ say so from now on: before anything is forgotten, which a kill would leave
        # without a word.
        record_compared(self.data_dir, self.coverage.chain, compared)
        for address in left_out:
            self.coverage.forget(address)
        if left_out:
            raise NodeError(" ".join(left_out.values()), meaning="LEFT_OUT")

    def _compared(self, dataset: Dataset, address: str, block: int) -> tuple[str, Compared | None]:
        """Return how balances compare, in words and as it is stored; nothing to store where they were not compared."""
        contract = dataset.catalog.contract(self.coverage.chain.id, address)
        # Nothing of it was ever logged.
        standard = (contract and contract.standard) or "ERC20"
        kind = "token" if standard == "ERC20" else "nft"
        holds, where = {kind: {kind: address}}, {"chain": self.coverage.chain.name, "asOf": block}
        sent = {"transfer": {kind: address, "direction": "out"}, "not": holds}
        # Who is drawn cannot be known before the block is, and is the same whenever that is looked at again.
        draw = random.Random(self.coverage.known().get(block))
        # Up to half of them sent all that they had: of what a contract moved without a log they have some left.
        expected = _drawn(dataset, {**sent, **where}, self.check // 2, draw)
        expected |= _drawn(dataset, {**holds, **where}, self.check - len(expected), draw)
        files = "erc1155_transfers" if standard == "ERC1155" else "token_transfers"
        ids = {} if kind == "token" else self._moved(address, expected.keys(), files, block)
        # Of ERC1155 the contract knows only the balance of each token id: those are summed that a wallet ever moved.
        each = ids if standard == "ERC1155" else {}
        asked = [(wallet, number) for wallet in expected for number in each.get(wallet, (None,))]
        moved = sorted(set().union(*ids.values())) if standard == "ERC721" else []
        drawn = draw.sample(moved, min(self.check, len(moved)))
        calls = [*starmap(balance_of, asked), *map(owner_of, drawn)]
        try:
            said = read_numbers(self.node, address, calls, block)
        except NodeError as error:
            return f"balances were not compared: {error}", None
        amounts, owners = said[: len(asked)], said[len(asked) :]
        if None in amounts:
            return f"balances were not compared: it says none at block {block:,}.", None
        sums = Counter[str]()
        for (wallet, _), amount in zip(asked, amounts, strict=True):
            sums[wallet] += amount or 0
        wrong = [wallet for wallet, amount in expected.items() if sums[wallet] != amount]
        # A contract that says nobody of all of them does not say owners.
        owned = self._owners(address, drawn) if any(owners) else []
        strayed = [
            fact
            for fact, who in zip(owned, owners, strict=False)
            if fact.stored(block) != (who or 0)
        ]
        # Whoever was sent nothing that is stored is not drawn: the supply has them, too.
        supply, minted = None, self._balance(address, ZERO_ADDRESS, kind)
        if standard != "ERC1155":
            with suppress(NodeError):
                (supply,) = read_numbers(self.node, address, [minted.asked], block)
        if supply == (stated := minted.stored(block)):
            supply = None
        differing = (
            self._balance(address, wallet, kind, number)
            for (wallet, number), amount in zip(asked, amounts, strict=True)
            if wallet in wrong and (number is None or ids[wallet][number] != amount)
        )
        looked_into = [*islice(differing, _LOOKED_INTO), *strayed[:_LOOKED_INTO]]
        if supply is not None:
            looked_into.append(minted)
        causes = [self._cause(address, block, fact) for fact in looked_into]
        # Rows that are wrong are read again, whatever else the contract does.
        cause, says = min(causes, key=lambda one: one[0] != _LEFT_OUT, default=(None, ""))
        equal = len(expected) - len(wrong)
        line = f"{equal} of {len(expected)} balances equal the chain's at block {block:,}."
        if owned:
            same = f"{len(owned) - len(strayed)} of {len(owned)}"
            line = f"{line[:-1]}, and {same} token ids have its owner."
        if not expected:
            line = f"nobody has a balance at block {block:,}."
        if contract and (lacks := missing_mints(contract)):
            line += f" {lacks[0].upper()}{lacks[1:]}."
        if supply is not None and cause != _LEFT_OUT:
            line += f" Its totalSupply is {supply:,} of the smallest unit, and {stated:,} by its transfers."
        found = Compared(
            block,
            equal,
            len(expected),
            cause,
            supply,
            None if supply is None else stated,
            len(strayed),
            len(owned),
        )
        return f"{line} {says}".rstrip(), found

    def _moved(
        self, contract: str, wallets: Set[str], files: str, last: int
    ) -> dict[str, Counter[int]]:
        """Return the token ids that wallets were ever sent, or sent, and how many of each they have at a block."""
        found: dict[str, Counter[int]] = {}
        for row in self.coverage.stored(contract, _ENDS, wallets, files):
            for wallet in wallets & {row[end] for end in _ENDS}:
                gained = _gained(row, wallet, "nft") if row["block"] <= last else 0
                found.setdefault(wallet, Counter())[int(row["value"])] += gained
        return found

    def _balance(self, contract: str, wallet: str, kind: str, number: int | None = None) -> _Fact:
        """Return what a wallet has of a token, of an nft in items, or of one token id of ERC1155.

        Of the zero address it is what there is: the supply.
        """
        is_supply = wallet == ZERO_ADDRESS
        files = "token_transfers" if number is None else "erc1155_transfers"
        # What it was sent, less what it sent: of the zero address the other way round.
        moves = [
            (row["block"], _gained(row, wallet, kind) * (-1 if is_supply else 1))
            for row in self.coverage.stored(contract, _ENDS, [wallet], files)
            if number in (None, int(row["value"]))
        ]
        return _Fact(
            SUPPLY if is_supply else balance_of(wallet, number),
            lambda block: sum(amount for at, amount in moves if at <= block),
            files,
        )

    def _owners(self, contract: str, ids: Iterable[int]) -> list[_Fact]:
        """Return whose each token id is: the recipient of its last transfer."""
        by_id: dict[str, list[Mapping[str, Any]]] = {str(number): [] for number in ids}
        for row in self.coverage.stored(contract, ["value"], by_id):
            by_id[row["value"]].append(row)

        def owner(moves: Sequence[Mapping[str, Any]], block: int) -> int:
            before = [row for row in moves if row["block"] <= block]
            last = max(before, key=itemgetter("block", "log_index"), default={"recipient": "0x0"})
            return int(last["recipient"], 16)

        return [
            _Fact(owner_of(int(number)), partial(owner, moves)) for number, moves in by_id.items()
        ]

    def _cause(self, contract: str, last: int, fact: _Fact) -> tuple[str, str]:
        """Find the first block at which the data differs from the contract, and look at its transfers.

        Returns why they differ, as `Compared` has it, and in words. At ``last`` they do; before the contract's first
        block nobody has anything.
        """

        def differs(block: int) -> bool:
            (said,) = read_numbers(self.node, contract, [fact.asked], block)
            # Where it says nothing yet, there is nothing.
            return (said or 0) != fact.stored(block)

        blocks = range(self.firsts[contract], last)
        there: set[tuple[Any, ...]] | None = None
        try:
            high = blocks.start + bisect_left(blocks, True, key=differs)
            wanted = LogFilter(high, high, (contract,), tuple(self.topics[contract]))
            _, rows = read_range(self.node, wanted, near_end=True)
            there = {(at, *move[:3]) for _, *move, at, _, _ in rows}
        except Refusal as refusal:
            if not refusal.finding:
                return _UNKNOWN
        except NodeError:
            return _UNKNOWN
        if not there and there is not None and self.node.unchecked:
            return _UNKNOWN
        stored = {
            tuple(row[name] for name in ("log_index", "sender", "recipient", "value"))
            for row in self.coverage.stored(contract, ["block"], [high], fact.files)
        }
        # A refusal of ours: it hides what the block has.
        if there is None or there - stored:
            found = f"The node left logs out: block {high:,} has transfers that it did not return."
        elif there != stored:
            found = f"The node returned wrong logs: block {high:,} does not have all transfers that it returned."
        else:
            found = f"It moves balances without a Transfer, first in block {high:,}: {_MOVES}."
            return "unlogged", f"{found} {_APPROXIMATE}"
        return _LEFT_OUT, f"{found} {_AGAIN}"


def _gained(row: Mapping[str, Any], wallet: str, kind: str) -> int:
    """Return what a wallet gained by a transfer; less than 0 where it lost it."""
    amount = row["value"] if kind == "token" else row.get("count", 1)
    sign: int = (row["recipient"] == wallet) - (row["sender"] == wallet)
    return int(amount) * sign


def _drawn(
    dataset: Dataset, filters: Mapping[str, Any], many: int, draw: random.Random
) -> dict[str, int]:
    """Return what wallets of a segment have of a contract, of so many, each as likely as any other."""
    plan = resolve(parse({"filters": filters}), dataset)
    rows = dataset.ask(compile(plan), limit=_ALL).stored
    exact = [name for name in rows.schema.names if name != "address"]
    column = next((name for name in exact if name.endswith("_raw")), (*exact, None)[0])
    places = draw.sample(range(rows.num_rows), min(many, rows.num_rows))
    found: dict[str, int] = {}
    for number, batch in enumerate(rows.batches()):
        for place in places:
            at, row = divmod(place, rows.per_batch)
            if at == number:
                has = int(batch[column][row].as_py()) if column else 0
                found[batch["address"][row].as_py()] = has
    rows.close()
    return found
