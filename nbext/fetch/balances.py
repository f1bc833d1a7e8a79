"""Whether holders have what the contract says, and token ids their owners, printed and stored; and if not, why.

A token that rebases or takes a fee looks like one of which a node left logs out. The first block at which the data and
the contract part tells them apart: either it has a transfer that is not stored, or it has none.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import starmap
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
from nbext.node.coverage import Coverage, uncovered
from nbext.node.limits import Meaning
from nbext.node.ranges import LogFilter, read_range
from nbext.node.rpc import Node, Refusal

if TYPE_CHECKING:
    from nbext.engine.query.answers import Dataset

# More than any contract has, and rows that an answer may have.
_ALL = 30_000_000
_ENDS = ("sender", "recipient")
# A wallet, and which token id of ERC1155.
_Holding = tuple[str, int | None]


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
    """A number that a contract says: what it is asked, as the data of the call, and by how much which blocks moved it.

    It is a balance, a supply, or an owner's address.
    """

    asked: str
    moves: list[tuple[int, int]]

    def stored(self, block: int) -> int:
        """Return what the data says at a block."""
        return sum(amount for at, amount in self.moves if at <= block)


@dataclass(frozen=True)
class Balances:
    """The contracts of a fetch: their events and first blocks, and of how many holders balances are compared."""

    node: Node
    coverage: Coverage
    data_dir: Path
    topics: Mapping[str, Sequence[str]]
    firsts: Mapping[str, int]
    check: int

    def verify(self, last: int, say: Callable[[str], None], *, is_last: bool) -> None:
        """Compare balances of holders with what each contract says at a block that was read; say and store how.

        ``is_last`` tells that nothing is read again where logs are missing: the fetch ends.

        Raises
        ------
        NodeError
            The node left logs out: nothing of that contract is covered any more.
        """
        # Without the first transfers no balance can be equal.
        whole = [
            address
            for address, topics in self.topics.items()
            if not uncovered(0, last, self.coverage.complete(address, topics))
        ]
        if not self.check or not whole:
            return
        compared, lines = {}, {}
        try:
            with closing(open_dataset(self.data_dir)) as dataset:
                for address in whole:
                    line, found = self._compared(dataset, address, last)
                    lines[address] = f"{self.coverage.name_of(address)}: {line}"
                    if found:
                        compared[address] = found
        finally:
            # Where it is interrupted, too. Answers about those that differ say so from now on: before anything is
            # forgotten, which a kill would leave without a word.
            record_compared(self.data_dir, self.coverage.chain, compared)
            left_out = {
                address: lines.pop(address)
                for address, each in compared.items()
                if each.cause == _LEFT_OUT
            }
            for address in left_out:
                self.coverage.forget(address)
            # What is read again may be of the others, too, which are compared again then: nothing is said of them
            # before.
            if is_last or not left_out:
                for line in lines.values():
                    say(line)
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
        # Token ids that they were ever sent, or sent. Of ERC1155 the contract knows only the balance of each.
        moved = {
            (row[end], int(row["value"]))
            for row in self.coverage.stored(
                address, _ENDS, expected if kind == "nft" else (), standard
            )
            for end in _ENDS
            if row[end] in expected
        }
        asked = sorted(moved) if standard == "ERC1155" else [(each, None) for each in expected]
        ids = sorted({number for _, number in moved if standard == "ERC721"})
        owned = self._owners(address, draw.sample(ids, min(self.check, len(ids))))
        calls = [*starmap(balance_of, asked), *(fact.asked for fact in owned)]
        try:
            said = read_numbers(self.node, address, calls, block)
        except NodeError as error:
            return f"balances were not compared: {error}", None
        amounts, owners = dict(zip(asked, said, strict=False)), said[len(asked) :]
        if None in amounts.values():
            return f"balances were not compared: it says none at block {block:,}.", None
        sums = Counter[str]()
        for (wallet, _), amount in amounts.items():
            sums[wallet] += amount or 0
        wrong = {wallet for wallet, amount in expected.items() if sums[wallet] != amount}
        keys = [key for key in asked if key[0] in wrong]
        differing = [
            fact
            for key, fact in self._held(address, keys, standard).items()
            if key[1] is None or fact.stored(block) != amounts[key]
        ]
        # A contract that says nobody of all of them does not say owners.
        owned = owned if any(owners) else []
        strayed = [
            fact
            for fact, who in zip(owned, owners, strict=False)
            if fact.stored(block) != (who or 0)
        ]
        looked_into = [*differing[:_LOOKED_INTO], *strayed[:_LOOKED_INTO]]
        # Whoever was sent nothing that is stored is not drawn: the supply has them, too.
        supply = minted = None
        if standard != "ERC1155":
            (burnt,) = self._held(address, [(ZERO_ADDRESS, None)], standard).values()
            there = _Fact(SUPPLY, [(at, -amount) for at, amount in burnt.moves])
            with suppress(NodeError):
                (supply,) = read_numbers(self.node, address, [there.asked], block)
            if supply in (None, minted := there.stored(block)):
                supply = minted = None
            else:
                looked_into.append(there)
        causes = [self._cause(address, block, fact, standard) for fact in looked_into]
        # Rows that are wrong are read again, whatever else the contract does.
        cause, says = min(causes, key=lambda one: one[0] != _LEFT_OUT, default=(None, ""))
        equal = len(expected) - len(wrong)
        line = (
            f"{equal} of {len(expected)} balances equal the chain's"
            if expected
            else "nobody has a balance"
        )
        line += f" at block {block:,}"
        if owned:
            line += f", and {len(owned) - len(strayed)} of {len(owned)} token ids have its owner"
        line += "."
        if contract and (lacks := missing_mints(contract)):
            line += f" {lacks[0].upper()}{lacks[1:]}."
        if supply is not None and cause != _LEFT_OUT:
            line += f" Its totalSupply is {supply:,} of the smallest unit, and {minted:,} by its transfers."
        found = Compared(
            block, equal, len(expected), cause, supply, minted, len(strayed), len(owned)
        )
        return f"{line} {says}".rstrip(), found

    def _held(
        self, contract: str, keys: Iterable[_Holding], standard: str
    ) -> dict[_Holding, _Fact]:
        """Return what wallets have of a token, of a collection in items, or of a token id of ERC1155."""
        facts = {key: _Fact(balance_of(*key), []) for key in keys}
        wallets = {wallet for wallet, _ in facts}
        for row in self.coverage.stored(contract, _ENDS, wallets, standard):
            amount = int(row["value"] if standard == "ERC20" else row.get("count", 1))
            for number in (None, int(row["value"])):
                for end, gained in zip(_ENDS, (-amount, amount), strict=True):
                    if fact := facts.get((row[end], number)):
                        fact.moves.append((row["block"], gained))
        return facts

    def _owners(self, contract: str, ids: Iterable[int]) -> list[_Fact]:
        """Return whose each token id is: the recipient of its last transfer."""
        facts = {str(number): _Fact(owner_of(number), []) for number in ids}
        rows = self.coverage.stored(contract, ["value"], facts)
        owners = dict.fromkeys(facts, 0)
        for row in sorted(rows, key=itemgetter("block", "log_index")):
            number, owner = row["value"], int(row["recipient"], 16)
            # From whoever has it, whoever is said to have sent it: a transfer may be missing.
            facts[number].moves.append((row["block"], owner - owners[number]))
            owners[number] = owner
        return list(facts.values())

    def _cause(self, contract: str, last: int, fact: _Fact, standard: str) -> tuple[str, str]:
        """Find the first block at which the data differs from the contract, and look at its transfers.

        Returns why they differ, as `Compared` has it, and in words. At ``last`` they do; before the contract's first
        block nobody has anything.
        """

        def differs(block: int) -> bool:
            (said,) = read_numbers(self.node, contract, [fact.asked], block)
            has = fact.stored(block)
            # Of a state that they have pruned some nodes answer as if no contract had been there.
            if said is None and has:
                raise Refusal(Meaning.PRUNED)
            # Where it says nothing yet, there is nothing.
            return (said or 0) != has

        blocks = range(self.firsts[contract], last)
        there: set[tuple[Any, ...]] | None = None
        try:
            high = blocks.start + bisect_left(blocks, True, key=differs)
            wanted = LogFilter(high, high, (contract,), tuple(self.topics[contract]))
            _, rows = read_range(self.node, wanted, near_end=True)
            there = {(at, *move[:3]) for _, _, at, _, *move in rows}
        except (Refusal, NodeError) as why:
            if not getattr(why, "finding", ""):
                return _UNKNOWN
        if there == set() and self.node.unchecked:
            return _UNKNOWN
        stored = {
            tuple(row[name] for name in ("log_index", "sender", "recipient", "value"))
            for row in self.coverage.stored(contract, ["block"], [high], standard)
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


def _drawn(
    dataset: Dataset, filters: Mapping[str, Any], many: int, draw: random.Random
) -> dict[str, int]:
    """Return what wallets of a segment have of a contract, of so many, each as likely as any other."""
    plan = resolve(parse({"filters": filters}), dataset)
    rows = dataset.ask(compile(plan), limit=_ALL).stored
    places = draw.sample(range(rows.num_rows), min(many, rows.num_rows))
    found: dict[str, int] = {}
    for number, batch in enumerate(rows.batches()):
        for place in places:
            at, row = divmod(place, rows.per_batch)
            if at == number:
                # The last one is exact; of those that have nothing left there is none.
                wallet, *has = (column[row].as_py() for column in batch.columns)
                found[wallet] = int([0, *has][-1])
    rows.close()
    return found
