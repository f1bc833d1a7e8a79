"""Whether holders have what the contract says, and token ids their owners, printed and stored; and if not, why.

A token that rebases or takes a fee looks like one of which a node left logs out. The first block at which the data and
the contract part tells them apart: either it has a transfer that is not stored, or it has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.dataset import Compared
from nbext.engine.ingest.run import record_compared
from nbext.engine.open import open_dataset
from nbext.errors import NodeError
from nbext.language.language import compile, parse, resolve  # noqa: A004  the step's name
from nbext.language.lookup import missing_mints
from nbext.node.contracts import read_balances, read_owners, read_supply
from nbext.node.coverage import Coverage
from nbext.node.ranges import LogFilter, read_range
from nbext.node.rpc import Node, Refusal

if TYPE_CHECKING:
    from nbext.engine.query.answers import Dataset

# More than any contract has, and rows that an answer may have.
_ALL = 30_000_000


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
        compared, left_out = {}, []
        dataset = open_dataset(self.data_dir)
        try:
            for address in whole:
                line, found = self._compared(dataset, address, last)
                if found:
                    compared[address] = found
                    self.coverage.about[address]["check"] = asdict(found)
                if found and found.cause == _LEFT_OUT:
                    left_out.append(f"{self.coverage.name_of(address)}: {line}")
                    self.coverage.forget(address)
                else:
                    say(f"{self.coverage.name_of(address)}: {line}")
        finally:
            dataset.close()
        self.coverage.save()
        # Answers about those that differ say so from now on.
        record_compared(self.data_dir, self.coverage.chain, compared)
        if left_out:
            raise NodeError(" ".join(left_out), meaning="LEFT_OUT")

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
        ids = {} if kind == "token" else self._ids_moved(address, expected, standard)
        # Of ERC1155 the contract knows only the balance of each token id: those are summed that a wallet ever moved.
        each = ids if standard == "ERC1155" else {}
        asked = [(wallet, number) for wallet in expected for number in each.get(wallet, (None,))]
        moved = sorted(set().union(*ids.values())) if standard == "ERC721" else []
        drawn = draw.sample(moved, min(self.check, len(moved)))
        try:
            said = read_balances(self.node, address, asked, block)
            owners = dict(zip(drawn, read_owners(self.node, address, drawn, block), strict=True))
            # Whoever was sent nothing that is stored is not drawn: the supply has them, too.
            supply = None if standard == "ERC1155" else self._supply(address, block)
        except NodeError as error:
            return f"balances were not compared: {error}", None
        if None in said:
            return f"balances were not compared: it says none at block {block:,}.", None
        sums = dict.fromkeys(expected, 0)
        for (wallet, _), amount in zip(asked, said, strict=True):
            sums[wallet] += amount or 0
        wrong = [wallet for wallet, amount in sums.items() if expected[wallet] != amount]
        # A contract that says nobody of all of them does not say owners.
        told = drawn if any(owners.values()) else []
        moves = list(self.coverage.stored(address, "value", map(str, told)))
        owned = {number: [row for row in moves if row["value"] == str(number)] for number in told}
        strayed = [number for number in owned if _owner(owned[number], block) != owners[number]]
        minted = -_held(self._moves(address, ZERO_ADDRESS, kind), block)
        looked_into = [self._of_wallet(address, wallet, kind) for wallet in wrong[:_LOOKED_INTO]]
        looked_into += [
            self._of_id(address, number, owned[number]) for number in strayed[:_LOOKED_INTO]
        ]
        if supply == minted:
            supply = None
        if supply is not None:
            looked_into.append(self._of_wallet(address, ZERO_ADDRESS, kind))
        causes = (
            [_UNKNOWN]
            if wrong and standard == "ERC1155"
            else [self._cause(address, block, differs) for differs in looked_into]
        )
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
            line += f" Its totalSupply is {supply:,} of the smallest unit, and {minted:,} by its transfers."
        stated = None if supply is None else minted
        found = Compared(
            block, equal, len(expected), cause, supply, stated, len(strayed), len(owned)
        )
        return f"{line} {says}".rstrip(), found

    def _supply(self, address: str, block: int) -> int | None:
        """Return the supply that a contract says; None also where the node does not say it."""
        try:
            return read_supply(self.node, address, block)
        except NodeError:
            return None

    def _ids_moved(
        self, contract: str, wallets: Iterable[str], standard: str
    ) -> dict[str, set[int]]:
        """Return the token ids that wallets were ever sent, or sent."""
        files = "erc1155_transfers" if standard == "ERC1155" else "token_transfers"
        found: dict[str, set[int]] = {}
        for end in ("sender", "recipient"):
            for row in self.coverage.stored(contract, end, wallets, files):
                found.setdefault(row[end], set()).add(int(row["value"]))
        return found

    def _moves(self, contract: str, wallet: str, kind: str) -> list[tuple[int, int]]:
        """Return what a wallet received and sent of a token, or of an nft in items: blocks and signed amounts."""
        return [
            (row["block"], sign * (1 if kind == "nft" else int(row["value"])))
            for end, sign in (("recipient", 1), ("sender", -1))
            for row in self.coverage.stored(contract, end, [wallet])
        ]

    def _of_wallet(self, contract: str, wallet: str, kind: str) -> Callable[[int], bool]:
        """Return whether a holder's balance at a block is the contract's; of the zero address, what was minted."""
        moves = self._moves(contract, wallet, kind)

        def same(block: int) -> bool:
            if wallet == ZERO_ADDRESS:
                said = -(read_supply(self.node, contract, block) or 0)
            else:
                # Where it says nothing yet, it has nothing.
                said = read_balances(self.node, contract, [(wallet, None)], block)[0] or 0
            return said == _held(moves, block)

        return same

    def _of_id(
        self, contract: str, number: int, moves: Sequence[Mapping[str, Any]]
    ) -> Callable[[int], bool]:
        """Return whether the owner of a token id at a block is the contract's."""
        return lambda block: (
            read_owners(self.node, contract, [number], block) == [_owner(moves, block)]
        )

    def _cause(self, contract: str, last: int, same: Callable[[int], bool]) -> tuple[str, str]:
        """Find the first block at which the data differs from the contract, and look at its transfers.

        Returns why they differ, as `Compared` has it, and in words.

        Parameters
        ----------
        last
            Where they differ; before the contract's first block nobody has anything.
        same
            Whether they are the same at a block.
        """
        low, high = self.firsts[contract] - 1, last
        wanted = LogFilter((contract,), tuple(self.topics[contract]))
        there: set[tuple[Any, ...]] | None = None
        try:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if same(middle) else (low, middle)
            read = read_range(self.node, wanted, high, high, near_end=True)
            there = {(at, *move[:3]) for _, *move, at, _, _ in read.rows}
        except Refusal as refusal:
            if not refusal.finding:
                return _UNKNOWN
        except NodeError:
            return _UNKNOWN
        if not there and there is not None and self.node.unchecked:
            return _UNKNOWN
        stored = {
            tuple(row[name] for name in ("log_index", "sender", "recipient", "value"))
            for row in self.coverage.stored(contract, "block", [high])
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


def _held(moves: Sequence[tuple[int, int]], block: int) -> int:
    """Return what a wallet has at a block by its moves."""
    return sum(amount for at, amount in moves if at <= block)


def _owner(moves: Sequence[Mapping[str, Any]], block: int) -> str | None:
    """Return who has a token id at a block by its moves; None of one that nobody has, or had by then."""
    before = [row for row in moves if row["block"] <= block]
    last = max(before, key=itemgetter("block", "log_index"), default={"recipient": ZERO_ADDRESS})
    return None if last["recipient"] == ZERO_ADDRESS else last["recipient"]


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
    start = 0
    for batch in rows.batches():
        here = [place - start for place in places if start <= place < start + batch.num_rows]
        for row in batch.take(pa.array(here, pa.int64())).to_pylist():
            found[row["address"]] = int(row[column]) if column else 0
        start += batch.num_rows
    rows.close()
    return found
