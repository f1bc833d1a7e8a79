"""What a chain did, as plain Python values: contracts, transfers, holder snapshots, and which blocks have a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

ZERO = "0x" + "0" * 40
DEAD = "0x" + "0" * 36 + "dead"
BURNED = (ZERO, DEAD)
GENESIS = 1_700_000_000


@dataclass(frozen=True)
class Transfer:
    """One transfer: of an amount (ERC20), or of ``count`` of a token id, which ``amount`` is."""

    contract: int
    block: int
    log_index: int
    sender: str
    recipient: str
    amount: int
    count: int = 1


class Held(NamedTuple):
    """A row of a holder snapshot: how much a wallet held, of one token id or of the token."""

    wallet: str
    amount: int
    token_id: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """Who held a contract's tokens at the end of a block."""

    block: int
    held: tuple[Held, ...]


@dataclass
class World:
    """Contracts, transfers and blocks.

    ``seconds`` maps a chain to the seconds between its blocks; 0: the data has no times of that chain. ``blocks`` has
    each (chain, block) that the data knows of, ``untimed`` those of them without a time. A contract in ``snapshots``
    has balances from there on.
    """

    contracts: Sequence[Any]
    transfers: Sequence[Transfer]
    last_blocks: dict[int, int]
    seconds: dict[int, int] = field(default_factory=dict)
    contract_wallets: frozenset[str] = frozenset()
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    untimed: frozenset[tuple[int, int]] = frozenset()
    blocks: frozenset[tuple[int, int]] = frozenset()
    # (contract, snapshot): those that a later one of the contract took the place of, too. Whom they name was seen.
    named: Sequence[tuple[int, Snapshot]] = ()

    def timestamp(self, chain_id: int, block: int) -> int | None:
        step = self.seconds.get(chain_id, 3600)
        return GENESIS + block * step if step else None

    @property
    def addresses(self) -> list[str]:
        found = {side for one in self.transfers for side in (one.sender, one.recipient)}
        return sorted(found)
