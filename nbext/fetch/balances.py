"""Whether holders have what the contract says, printed and stored; and where they do not, why."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import ZERO_ADDRESS
from nbext.errors import NodeError

if TYPE_CHECKING:
    from nbext.engine.dataset import Compared, Dataset
    from nbext.node.coverage import Coverage
    from nbext.node.rpc import Node

# More than any contract has, and rows that an answer may have.
_ALL = 30_000_000
# Why balances differ from the chain's, by `nbext.node.comparison.Cause`.
_MOVES = "it rebases, takes a fee on transfer, or wraps ether (--deposits reads those logs)"
_DIFFERS = {
    "unlogged": f"It moves balances without a Transfer, first in block {{first}}: {_MOVES}. Answers about it are "
    "approximate.",
    "left out": "The node left logs out: block {first} has transfers that it did not return. The next fetch reads "
    "all blocks of the contract again: use another node.",
    "unknown": f"It moves balances without a Transfer: {_MOVES}. Or the node left logs out: it does not have the old "
    "states that would show which. Answers about it are approximate.",
}
# Holders of those whose balances differ, of which the first block is sought at which they do.
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
        from nbext.engine.ingest.run import record_compared
        from nbext.engine.open import open_dataset

        # Without the first transfers no balance can be equal.
        whole = [
            address
            for address, topics in self.topics.items()
            if any(
                first <= (self.coverage.about.get(address, {}).get("deployed") or 0) and end >= last
                for first, end in self.coverage.covered(address, topics)
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
                if found and found.cause == "left out":
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
        from nbext.engine.dataset import Compared
        from nbext.node.comparison import Cause, Parting, parting, supply_differs
        from nbext.node.contracts import balances
        from nbext.node.windows import Wanted

        standard = (self.coverage.about[address].get("card") or ["ERC20"])[0]
        kind = "token" if standard == "ERC20" else "nft"
        filters = {kind: {kind: address}, "chain": self.coverage.chain.name, "asOf": block}
        holders = _drawn(dataset, filters, self.check)
        drawn = list(holders)
        # Of ERC1155 the contract knows only the balance of each token id: those are summed that a wallet was sent.
        ids = self.coverage.ids_sent_to(address, drawn) if standard == "ERC1155" else {}
        asked = [(wallet, number) for wallet in drawn for number in ids.get(wallet, [None])]
        try:
            said = list(balances(self.node, address, asked, block))
            # Whoever was sent nothing that is stored is not drawn: the supply has them, too.
            of_all = standard == "ERC20" and supply_differs(
                self.node, self.coverage, address, block
            )
        except NodeError as error:
            return f"balances were not compared: {error}", None
        sums = dict.fromkeys(drawn, 0)
        for (wallet, _), amount in zip(asked, said, strict=True):
            # A contract that does not answer has no balance that could be equal.
            sums[wallet] += -1 if amount is None else amount
        wrong = [wallet for wallet, amount in sums.items() if holders[wallet] != amount]
        partings = (
            [Parting(Cause.UNKNOWN)]
            if wrong and standard == "ERC1155"
            else [
                parting(
                    self.node,
                    self.coverage,
                    Wanted((address,), tuple(self.topics[address])),
                    wallet,
                    first=self.firsts[address],
                    last=block,
                )
                for wallet in (*wrong[:_LOOKED_INTO], *([ZERO_ADDRESS] if of_all else []))
            ]
        )
        line = f"{len(drawn) - len(wrong)} of {len(drawn)} balances equal the chain's at block {block:,}."
        if not drawn:
            line = f"nobody has a balance at block {block:,}."
        found = next(
            (one for one in partings if one.cause is Cause.LEFT_OUT), partings[0] if wrong else None
        )
        if found is not None:
            line += " " + _DIFFERS[found.cause.value].format(
                first=f"{found.block:,}" if found.block else ""
            )
        return line, Compared(
            block, len(drawn) - len(wrong), len(drawn), None if found is None else found.cause.value
        )


def _drawn(dataset: Dataset, filters: Mapping[str, Any], many: int) -> dict[str, int]:
    """Return what the data has of so many of a contract's holders, each as likely as any other."""
    import pyarrow as pa

    from nbext.language.language import compile, parse, resolve  # noqa: A004  the step's name

    plan = resolve(parse({"filters": filters}), dataset)
    rows = dataset.ask(compile(plan), limit=_ALL).stored
    exact = [name for name in rows.schema.names if name != "address"]
    column = next((name for name in exact if name.endswith("_raw")), exact[0])
    places = random.SystemRandom().sample(range(rows.num_rows), min(many, rows.num_rows))
    found: dict[str, int] = {}
    start = 0
    for batch in rows.batches():
        here = [place - start for place in places if start <= place < start + batch.num_rows]
        taken = batch.take(pa.array(here, pa.int64()))
        found |= dict(
            zip(taken["address"].to_pylist(), map(int, taken[column].to_pylist()), strict=True)
        )
        start += batch.num_rows
    rows.close()
    return found
