"""One query on one dataset: its chains, its time, and how its fields' values are resolved there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from nbext.core.addresses import checksummed
from nbext.core.chains import DEFAULT_CHAIN, Chain
from nbext.core.constants import NFT_STANDARDS
from nbext.core.uint256 import MAX_UINT256, TooManyDecimals, to_raw
from nbext.core.untrusted_text import shown, visible
from nbext.language.errors import at
from nbext.language.lookup import Names
from nbext.language.model import NO_BLOCKS, Amounts, Asked, Blocks, Bounds, Joined, Negated, Query, Range, Span
from nbext.language.times import Time, iso

if TYPE_CHECKING:
    from nbext.core.operations import AsOf
    from nbext.engine.dataset import Contract


@dataclass
class Scope:
    """Resolves the values of one query, and keeps which chains it used, and at which block of each.

    Attributes
    ----------
    as_of
        The query's time; where it has none, that of the segment it is part of.
    used
        The chains of its conditions, in order.
    ats
        The block of each chain at which the query is asked; None for the end of the data.
    """

    query: Query
    names: Names
    as_of: Time | None = None
    used: list[Chain] = field(default_factory=list)
    ats: dict[int, int | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report = self.names.report
        self.as_of = self.query.scope.as_of or self.as_of
        self.default = self.query.scope.chain or self._default()

    def _default(self) -> Chain:
        """Return ethereum; where the data has none of it and every condition names its chain, the first named."""
        # A user whose data is all on one other chain, and who says so in each condition, is not asked for ethereum.
        named = list(_chains(self.query.root))
        if self.names.has(DEFAULT_CHAIN) or not named or any(chain is None for chain in named):
            return DEFAULT_CHAIN
        return named[0] or DEFAULT_CHAIN

    def echo(self) -> AsOf:
        """Return the block and the time that the answer holds at."""
        clock = self.names.dataset.clock
        block = self.ats.get(self.default.id)
        if block is None:
            block, timestamp = clock.last(self.default.id)
        else:
            timestamp = clock.timestamp_of(self.default.id, block)
        return {"block": block, "timestamp": None if timestamp is None else iso(timestamp)}

    def canonical_time(self) -> int | str | None:
        """Return asOf as a block; as a time where several chains turn it into blocks of their own."""
        if self.as_of is None or all(block is None for block in self.ats.values()):
            return None
        # A block is one chain's; a time is every chain's.
        if len(self.ats) == 1:
            return self.ats[self.default.id]
        stamp = self.names.timestamp(self.as_of, self.default) if self.as_of.block is None else None
        return self.as_of.block if stamp is None else iso(stamp)

    def chains(self) -> list[Chain]:
        """Return the segment's chains: those of its conditions, or its own where they have none."""
        return self.used or [self.default]

    def contracts(self, asked: Asked, name: str, chain: Chain) -> tuple[Contract, ...]:
        """Return the contracts that a list names, each once."""
        pointer, found = at(asked.pointer, name), []
        for index, text in enumerate(asked.values[name]):
            contract = self._warned(self.names.contract(text, chain, at(pointer, index), nft=True), at(pointer, index))
            if contract is not None and contract in found:
                self.report.add(at(pointer, index), "twice", f"{shown(text)} stands in the list twice.")
            elif contract is not None:
                found.append(contract)
        return tuple(found)

    def chain(self, asked: Asked) -> Chain | None:
        """Return the chain of a condition, or None where the data holds nothing of it."""
        chain = asked.values.get("chain") or self.default
        pointer = at(asked.pointer, "chain") if "chain" in asked.values else "/filters/chain"
        if not self.names.chain(chain, pointer):
            return None
        if chain not in self.used:
            self.used.append(chain)
        self.at(chain, pointer)
        return chain

    def at(self, chain: Chain, pointer: str) -> int | None:
        """Return the block of ``asOf`` on a chain; None for the end of the data."""
        if chain.id not in self.ats:
            # Set first: an error in asOf is noted once, however many conditions look at that chain.
            self.ats[chain.id] = None
            if self.names.chain(chain, pointer) and self.as_of is not None:
                self.ats[chain.id] = self._as_of(chain, self.as_of)
        return self.ats[chain.id]

    def _as_of(self, chain: Chain, time: Time) -> int | None:
        pointer, clock = "/filters/asOf", self.names.dataset.clock
        if chain != self.default:
            time = self._abroad(time, chain, pointer)
        block = self.names.last_block(time, chain, pointer)
        if block is None or not self.names.within_data(block, chain, time, pointer):
            return None
        # The end of the data is what the prepared tables hold: no need to ask the history.
        return None if block == clock.last(chain.id)[0] else block

    def _abroad(self, time: Time, chain: Chain, pointer: str) -> Time:
        """Return a time of the segment's chain as a time that another chain can tell."""
        clock = self.names.dataset.clock
        stamp = (
            self.names.timestamp(time, self.default) if time.block is None
            else clock.timestamp_of(self.default.id, time.block)
        )
        if stamp is None:
            detail = f"the data has no block times for {self.default.name} to find {time.shown()} on {chain.name}."
            self.report.add(pointer, "no-times", detail)
            return time
        last = clock.last(chain.id)[1]
        # Chains end at different times; a minute's lag of one must not refuse a segment across both.
        if last is not None and stamp > last:
            self.warnings.append(f"the data of {chain.name} ends at {iso(last)}, before asOf: its end is taken.")
            stamp = last
        return Time(time.text, timestamp=stamp)

    def contract(self, asked: Asked, name: str, chain: Chain) -> Contract | None:
        """Return the contract that a field names."""
        text = asked.values.get(name)
        if text is None:
            return None
        pointer = at(asked.pointer, name)
        return self._warned(self.names.contract(text, chain, pointer, nft=name == "nft"), pointer)

    def _warned(self, contract: Contract | None, pointer: str) -> Contract | None:
        """Say so where a name leads to spam, or to a contract of which the data holds nothing."""
        if contract is not None:
            who = f"{shown(contract.symbol or contract.name or '')} ({checksummed(contract.address)})"
            if contract.spam:
                self.warnings.append(f"{pointer}: {who} is marked as spam.")
            if not contract.transfers and not contract.holders:
                self.warnings.append(f"{pointer}: the data holds no transfer and no holder of {who}.")
        return contract

    def amounts(self, asked: Asked, name: str, contract: Contract | None, low: int = 1) -> Amounts:
        """Return bounds of an amount in raw integers; ``low`` is the lower bound where none was given."""
        bounds, pointer = asked.values.get(name) or Bounds(), at(asked.pointer, name)
        raw = {
            key: None if bound is None else self.raw(asked, bound, contract, at(pointer, key))
            for key, bound in (("min", bounds.min), ("max", bounds.max))
        }
        least = raw["min"]
        return Amounts(low if least is None else least, raw["max"], none_too=bounds.min == 0)

    def raw(self, asked: Asked, amount: Decimal | int, contract: Contract | None, pointer: str) -> int | None:
        """Return an amount in the smallest unit."""
        decimals = self.decimals(asked, contract, pointer)
        if decimals is None:
            return None
        try:
            raw = to_raw(amount, decimals)
        except TooManyDecimals as error:
            unit = f"{_label(contract)} has {decimals}"
            if asked.values.get("unit") == "raw":
                unit = "raw amounts have none"
            if contract is not None and contract.standard in NFT_STANDARDS:
                unit = "NFTs are counted whole"
            self.report.add(pointer, "decimals", f"{amount} has {error.places} decimals; {unit}.")
            return None
        if raw > MAX_UINT256:
            self.report.add(pointer, "range", f"{amount} is out of range: more than 2^256-1 in the smallest unit.")
        return raw

    def decimals(self, asked: Asked, contract: Contract | None, pointer: str) -> int | None:
        """Return how many decimals amounts are written in; None, noted, where the data does not know."""
        if asked.values.get("unit") == "raw" or (contract and contract.standard in NFT_STANDARDS):
            return 0
        decimals = contract.decimals if contract else 0
        # A contract can claim anything; the standard's type ends at 255.
        if decimals is not None and 0 <= decimals <= 255:
            return decimals
        detail = (
            f"the data does not know the decimals of {_label(contract)}. "
            'Give the amount in its smallest unit, with "unit": "raw".'
        )
        self.report.add(pointer, "decimals", detail)
        return None

    def trivial(self, asked: Asked, name: str, within: Range) -> None:
        """Warn of a lower bound of 0 without an upper one: it asks nothing."""
        if within.none_too and within.high is None:
            pointer = at(at(asked.pointer, name), "min")
            self.warnings.append(f"{pointer}: 0 without max holds of every wallet seen.")

    def counts(self, asked: Asked, name: str, low: int = 1) -> Range:
        """Return bounds of a count."""
        bounds = asked.values.get(name) or Bounds()
        return Range(low if bounds.min is None else int(bounds.min), _int(bounds.max), none_too=bounds.min == 0)

    def since(self, asked: Asked, chain: Chain) -> int | None:
        """Return the block of ``heldSince``."""
        time, pointer = asked.values.get("heldSince"), at(asked.pointer, "heldSince")
        if time is None:
            return None
        block = self.names.last_block(time, chain, pointer)
        if block is None or not self.names.within_data(block, chain, time, pointer):
            return None
        end = self.at(chain, pointer)
        if end is not None and block > end:
            self.report.add(pointer, "range", f"{time.shown()} is after asOf, which is block {end:,}.")
        return block

    def blocks(self, span: Span, chain: Chain, pointer: str) -> Blocks:
        """Return the blocks of a window, up to the segment's time."""
        if self._reversed(span, chain):
            self.report.add(pointer, "range", "the window is empty: after lies behind before.")
        first = None if span.after is None else self.names.first_block(span.after, chain, at(pointer, "after"))
        last = None if span.before is None else self.names.last_block(span.before, chain, at(pointer, "before"))
        end = self.at(chain, "/filters/asOf")
        if end is not None and span != Span():
            last = end if last is None else min(end, last)
        latest = self.names.dataset.clock.last(chain.id)[0] if last is None else last
        if latest < 0 or (first or 0) > latest:
            self.warnings.append(f"{pointer}: no block of the data lies in this window.")
            return NO_BLOCKS
        return Blocks(first, last)

    def _reversed(self, span: Span, chain: Chain) -> bool:
        after, before = span.after, span.before
        if after is None or before is None or (after.block is None) != (before.block is None):
            return False
        if after.block is not None and before.block is not None:
            return after.block > before.block
        # In time, not in blocks: two times between the same two blocks are a window, though no block lies in it.
        stamps = [self.names.timestamp(time, chain) for time in (after, before)]
        return stamps[0] is not None and stamps[1] is not None and stamps[0] > stamps[1]


def _chains(node: Asked | Joined | Negated) -> Iterator[Chain | None]:
    if isinstance(node, Negated):
        yield from _chains(node.child)
    elif isinstance(node, Joined):
        for child in node.children:
            yield from _chains(child)
    elif node.name not in ("wallet", "segment"):
        yield node.values.get("chain")


def _int(value: Decimal | int | None) -> int | None:
    return None if value is None else int(value)


def _label(contract: Contract | None) -> str:
    return "the token" if contract is None else visible(contract.symbol or contract.address, 80)
