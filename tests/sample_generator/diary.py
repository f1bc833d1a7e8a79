"""The sample's transfers as the stories write them down."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from nbext.engine.sample.known import KNOWN, Known
from tests.sample_generator.cast import CONTRACTS, ZERO, contract
from tests.sample_generator.slots import LAST_SLOT
from tests.sample_generator.spam import SPAM


def key_of(known: Known) -> str:
    """Return the chain and what people call the contract there: ``ethereum:BAYC``."""
    return f"{known.chain}:{known.symbol or known.name}"


@cache
def by_key() -> dict[str, Known]:
    """Return the contracts by chain and symbol; the second of two with one symbol ends in ``#2``."""
    found: dict[str, Known] = {}
    for known in (*KNOWN, *SPAM):
        key = key_of(known)
        found[key if key not in found else f"{key}#2"] = known
    return found


@dataclass(frozen=True)
class Transfer:
    """One transfer; ``value`` is the raw amount of an ERC20, else the token id with its ``count``."""

    slot: int
    contract: Known
    sender: str
    recipient: str
    value: int
    count: int


class Diary:
    """Collects transfers in any order. Each story writes only what its wallets can afford."""

    def __init__(self) -> None:
        self._transfers: list[Transfer] = []

    def write(
        self, slot: int, key: str, sender: str, recipient: str, value: int, *, count: int = 1
    ) -> None:
        """Write down one transfer; what would lie after the sample's end does not happen."""
        # Stories need not look at the clock: what is cut off is always the latest part of a chain of events.
        if slot <= LAST_SLOT:
            self._transfers.append(Transfer(slot, by_key()[key], sender, recipient, value, count))

    def transfers(self) -> list[Transfer]:
        """Return all transfers in the order of their time, after what the contracts held at the start."""
        return sorted([*self._opening(), *self._transfers], key=lambda transfer: transfer.slot)

    def _opening(self) -> list[Transfer]:
        """Mint, in the first slot, all that the contracts among the wallets will ever send."""
        # Only ERC20s: nothing of a collection is ever in a contract's hands.
        names = {contract(name) for name in CONTRACTS}
        sent: dict[tuple[Known, str], int] = defaultdict(int)
        for transfer in self._transfers:
            if transfer.sender in names and transfer.contract.standard == "ERC20":
                sent[transfer.contract, transfer.sender] += transfer.value
        return [
            Transfer(0, token, ZERO, holder, _round_up(total), 1)
            for (token, holder), total in sent.items()
        ]


def _round_up(amount: int) -> int:
    unit = int("1" + "0" * (len(str(amount)) - 1))
    return -(-amount // unit) * unit
