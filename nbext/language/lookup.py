"""From what people write to what the data holds: chains, symbols, addresses, amounts and times of one query.

What the data does not hold is added to the report. The rest of the query is still looked up, so that all errors are
reported together: a condition that nothing can be made of is `Unresolved`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import checksummed, looks_like_address
from nbext.core.chains import DEFAULT_CHAIN, Chain, chain_of
from nbext.core.strict_json import below
from nbext.core.times import iso
from nbext.core.uint256 import MAX_UINT256, TooManyDecimals, to_raw
from nbext.core.untrusted_text import shown
from nbext.engine.query.amounts import NO_BLOCKS, Block, Range
from nbext.errors import AmbiguousSymbol
from nbext.language.describe import (
    ErrorReport,
    chain_name,
    contract_name,
    decimals_of,
    find_contract,
    unit_of,
    unknown_contract,
)
from nbext.language.fields import Bounds, Time, TimeRange, time_hint
from nbext.language.model import Parsed, ParsedCondition, ParsedGroup, ParsedQuery, SegmentNode

if TYPE_CHECKING:
    from nbext.core.wire import AsOf
    from nbext.engine.catalog import Catalog
    from nbext.engine.dataset import ChainExtent, Compared, Contract
    from nbext.engine.query.answers import Dataset
    from nbext.engine.query.set_tree import WalletList

# Of a contract, or of some of the contracts of an answer.
SHARELESS = "shares of the supply are not known"
_UNLOGGED = "it changes balances without a transfer, as tokens do that rebase or take a fee"
# Why a contract's balances differ from those of the data, by `Compared.cause`.
_CAUSES = {
    "unlogged": f"{_UNLOGGED}. Its amounts are approximate.",
    "unknown": f"{_UNLOGGED}, or the node left logs out. Its amounts are approximate.",
}


SavedRequest = Callable[[str], Mapping[str, Any] | None]
StoredLists = Callable[[str], "WalletList | None"]


class Unresolved(Exception):
    """A condition means nothing on the data; why is in the report."""


@dataclass
class Context(ABC):
    """One query on one dataset: looks its values up, and remembers which chains it used, and at which block of each.

    Attributes
    ----------
    as_of, as_of_chain
        The query's time, and the chain whose blocks it counts; where it has none, those of the segment it is part of.
    used
        The chains of its conditions, in order.
    ats
        The block of each chain at which the query is asked; None for the end of the data.
    saved, lists
        Return the request of a saved segment, or a stored list of wallets, by its id; or None.
    """

    query: ParsedQuery
    dataset: Dataset
    saved: SavedRequest
    lists: StoredLists
    report: ErrorReport = field(default_factory=ErrorReport)
    as_of: Time | None = None
    as_of_chain: Chain | None = None
    used: list[Chain] = field(default_factory=list)
    ats: dict[int, int | None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.extents = {extent.chain_id: extent for extent in self.dataset.about.chains}
        self._unknown_chains: set[int] = set()
        self.default = own_chain(self.query, self.saved)
        if self.as_of_chain is None or self.query.scope.as_of:
            self.as_of, self.as_of_chain = self.query.scope.as_of, self.default

    @abstractmethod
    def saved_segment(self, asked: ParsedCondition) -> SegmentNode:
        """Return the saved segment that a condition names."""

    def wallet_list(self, asked: ParsedCondition) -> WalletList:
        """Return the stored list of wallets that a condition names."""
        name, pointer = asked.values["list"], below(asked.pointer, "list")
        found = self.lists(name)
        if found is None:
            # The client looks for this code, and stores the list again.
            self.report.add(
                pointer,
                "unknown-list",
                f"No list {name} is stored here: lists are deleted when they are not used. Send it to POST /lists.",
            )
            raise Unresolved
        return found

    def warn(self, line: str) -> None:
        """Add a warning, once."""
        if line not in self.warnings:
            self.warnings.append(line)

    # Chains

    def chains(self) -> list[Chain]:
        """Return the segment's chains: those of its conditions, its own first; or its own where they have none.

        The first is the one on which wallets are described.
        """
        return sorted(self.used, key=lambda one: one != self.default) or [self.default]

    def chain(self, asked: ParsedCondition) -> Chain:
        """Return the chain of a condition, of which the data must hold something."""
        chain = asked.values.get("chain") or self.default
        pointer = below(asked.pointer, "chain") if "chain" in asked.values else "/filters/chain"
        if not self._holds(chain, pointer):
            raise Unresolved
        # A list, not a set: the order of the conditions decides the order in which chains are named.
        if chain not in self.used:
            self.used.append(chain)
        self.at(chain, pointer)
        return chain

    def _holds(self, chain: Chain, pointer: str) -> bool:
        """Check that the data holds a chain; one that it does not is reported once."""
        # Ten conditions on a chain that is not there are one mistake.
        if chain.id not in self.extents and chain.id not in self._unknown_chains:
            self._unknown_chains.add(chain.id)
            held = ", ".join(map(chain_name, self.extents))
            self.report.add(
                pointer,
                "chain",
                f"The data has nothing on {chain.name}. It has: {held}."
                if held
                else "The data has metadata only: no transfers or holders are ingested.",
            )
        return chain.id in self.extents

    # Contracts

    def contract(self, asked: ParsedCondition, name: str, chain: Chain) -> Contract:
        """Return the contract that a field names."""
        text, nft = asked.values[name], asked.kinds[name] == "collection"
        return self._contract(text, chain, below(asked.pointer, name), nft=nft)

    def contracts(self, asked: ParsedCondition, name: str, chain: Chain) -> tuple[Contract, ...]:
        """Return the collections that a list names, each once."""
        found: list[Contract] = []
        for index, text in enumerate(asked.values[name]):
            pointer = below(below(asked.pointer, name), index)
            with contextlib.suppress(Unresolved):
                contract = self._contract(text, chain, pointer, nft=True)
                if contract in found:
                    self.report.add(pointer, "twice", f"{shown(text)} is in the list twice.")
                else:
                    found.append(contract)
        return tuple(found)

    def _contract(self, text: str, chain: Chain, pointer: str, *, nft: bool) -> Contract:
        try:
            contract = find_contract(self.dataset.catalog, chain, text, pointer, nft=nft)
        except AmbiguousSymbol as error:
            self.report.take(error)
            raise Unresolved from None
        if contract is None:
            code = "unknown-contract" if looks_like_address(text) else "unknown-symbol"
            # All symbols of the chain are compared for a suggestion: it is made for errors that are shown.
            detail = ""
            if not self.report.full:
                detail = unknown_contract(self.dataset.catalog, self.extents, chain, text, nft=nft)
            self.report.add(pointer, code, detail)
            raise Unresolved
        # Of a contract whose standard nobody knows, what was asked for is believed.
        if contract.standard is not None and contract.is_nft != nft:
            wanted, other = ("an NFT collection", "token") if nft else ("an ERC20 token", "nft")
            # Where its transfers misled us, the question is right.
            more = f": {_inferred(contract, chain)}" if contract.inferred else "."
            detail = f"{checksummed(text)} is {contract.standard}, not {wanted}. Use {other!r} for it{more}"
            self.report.add(pointer, "standard", detail)
            raise Unresolved
        # Either is the likelier mistake than the question: a copy of a token, or a contract of another chain.
        who = f"{shown(contract.symbol or contract.name or '')} ({checksummed(contract.address)})"
        if contract.spam:
            self.warn(f"{pointer}: {who} is marked as spam.")
        if not contract.transfers and not contract.holders:
            self.warn(f"{pointer}: the data has no transfer and no holder of {who}.")
        for note in notes_on(contract, chain, self.extents[chain.id]):
            self.warn(note)
        return contract

    def warn_of_gaps(self, chain: Chain) -> None:
        """Warn of blocks without a row, where all transfers of a chain are looked at, whichever contract's."""
        extent = self.extents[chain.id]
        gaps = [
            gap
            for gap in extent.gaps
            if not (extent.covered and all(extent.covers(one, *gap) for one in extent.covered))
        ]
        if gaps:
            self.warn(
                f"{chain.name}: transfers are missing: the data has no row of {_widest(gaps)}."
            )

    # Amounts and counts

    def amounts(
        self, asked: ParsedCondition, name: str, contract: Contract | None, low: int = 1
    ) -> Range:
        """Return bounds of an amount, or of how many NFTs, in raw integers; ``low`` where no lower one was given."""
        bounds, pointer = asked.values.get(name) or Bounds(), below(asked.pointer, name)
        least, most = (
            None
            if amount is None or contract is None
            else self._raw(asked, amount, contract, below(pointer, key))
            for key, amount in (("min", bounds.min), ("max", bounds.max))
        )
        return Range(low if least is None else least, most)

    def counts(self, asked: ParsedCondition, name: str, *beside: str) -> Range:
        """Return bounds of a count. Without a lower one, some is meant; or none, where 0 is that of one ``beside``."""
        bounds = asked.values.get(name) or Bounds()
        others = [asked.values[other].min for other in beside if other in asked.values]
        some = not (0 in others and not any(others))
        least = some if bounds.min is None else bounds.min
        return Range(int(least), None if bounds.max is None else int(bounds.max))

    def warn_of_every_wallet(self, asked: ParsedCondition, *names: str) -> None:
        """Warn of lower bounds of 0 without upper ones: they ask nothing."""
        given = [name for name in names if name in asked.values]
        if given and all(asked.values[name] == Bounds(0) for name in given):
            pointer = below(below(asked.pointer, given[0]), "min")
            self.warn(f"{pointer}: 0 without max matches every wallet seen.")

    def _raw(
        self, asked: ParsedCondition, amount: Decimal | int, contract: Contract, pointer: str
    ) -> int | None:
        """Return an amount in the smallest unit."""
        label, counted = contract_name(contract), "nft" in asked.values
        is_raw = asked.values.get("unit") == "raw"
        decimals = 0 if is_raw or counted else decimals_of(contract)
        if decimals is None:
            self.report.add(
                pointer,
                "decimals",
                f"The data does not have the decimals of {label}. "
                'Give the amount in its smallest unit, with "unit": "raw".',
            )
            return None
        try:
            raw = to_raw(amount, decimals)
        except TooManyDecimals as error:
            unit = "raw amounts have none" if is_raw else f"{label} has {decimals}"
            unit = "NFTs are counted whole" if counted else unit
            places = f"{error.places} decimal{'s' * (error.places > 1)}"
            # As a mean in pandas has them: to the bound that the same amounts meet. An NFT is not to be rounded.
            with localcontext(rounding=ROUND_CEILING if pointer.endswith("/min") else ROUND_FLOOR):
                rounded = "" if counted else f" Round it: {amount:.{decimals}f}."
            self.report.add(pointer, "decimals", f"{amount} has {places}; {unit}.{rounded}")
            return None
        if raw > MAX_UINT256:
            self.report.add(
                pointer,
                "range",
                f"{amount} is out of range: more than 2^256-1 in the smallest unit.",
            )
        return raw

    def supply(self, contract: Contract, at: int | None) -> int:
        """Return a contract's totalSupply at a block; 0 after a warning where it is not known."""
        number, stated = contract.contract, contract.total_supply
        known = {} if stated is None else self.dataset.catalog.supplies({number: stated}, at)
        if number not in known:
            why = (
                "the data may begin after its first mint"
                if stated is None
                else "totalSupply is not what its wallets hold"
            )
            self.warn(f"{contract_name(contract)}: {SHARELESS}: {why}.")
        return known.get(number, 0)

    # Times

    def at(self, chain: Chain, pointer: str) -> int | None:
        """Return the block of ``asOf`` on a chain; None for the end of the data."""
        if chain.id not in self.ats:
            # Set first: an error in asOf is reported once, however many conditions look at that chain.
            self.ats[chain.id] = None
            if self._holds(chain, pointer) and self.as_of is not None:
                self.ats[chain.id] = self._as_of(chain, self.as_of)
        return self.ats[chain.id]

    def echo(self) -> AsOf:
        """Return the block that the answer holds at, its time and its hash."""
        clock, chain_id = self.dataset.clock, self.default.id
        block = self.ats.get(chain_id)
        block = clock.last(chain_id)[0] if block is None else block
        timestamp, of_block = clock.moment(chain_id, block)
        known: AsOf = {"block": int(block), "timestamp": iso(timestamp)}
        return {**known, "hash": of_block} if of_block else known

    def canonical_time(self) -> int | str | None:
        """Return asOf as a block; as a time where several chains turn it into blocks of their own."""
        if self.as_of is None or all(block is None for block in self.ats.values()):
            return None
        # A block is one chain's; a time is every chain's.
        if len(self.ats) == 1:
            return self.ats[self.default.id]
        if (stamp := self._timestamp(self.as_of, self.default)) is None:
            return self.as_of.block
        # A day may end after the data of a chain; its last second may not.
        return str(iso(stamp))[:10] if self.as_of.day else iso(stamp)

    def held_at(self, asked: ParsedCondition, chain: Chain, *contracts: Contract) -> int | None:
        """Return the block of ``asOf`` for balances of some contracts, which must be known by then."""
        block = self.at(chain, asked.pointer)
        for contract in contracts:
            self._check_known(contract, chain, block, "/filters/asOf")
        return block

    def owned_at(self, asked: ParsedCondition, chain: Chain) -> int | None:
        """Return the block of ``asOf`` for all NFTs of a chain, which must all be known by then."""
        starts = self.extents[chain.id].snapshots
        found = [self.dataset.catalog.contract(chain.id, one) for one in starts]
        begun = [one for one in found if one is not None and one.is_nft]
        latest = sorted(begun, key=lambda one: starts[one.address])[-1:]
        return self.held_at(asked, chain, *latest)

    def _check_known(
        self, contract: Contract, chain: Chain, block: int | None, pointer: str
    ) -> None:
        """Check that the balances of a contract are known at a block: before its snapshot nobody would hold any."""
        start = self.extents[chain.id].snapshots.get(contract.address, 0)
        if block is not None and block < start:
            self.report.add(
                pointer,
                "range",
                f"Block {block:,} is before the balances of {contract_name(contract)} on "
                f"{chain.name}: they begin with a snapshot of holders, of block {start:,}.",
            )

    def since(self, asked: ParsedCondition, chain: Chain, contract: Contract) -> int | None:
        """Return the block of ``heldSince``."""
        time: Time | None = asked.values.get("heldSince")
        if time is None:
            return None
        pointer = below(asked.pointer, "heldSince")
        block = self._moment(time, chain, pointer)
        if block is None:
            return None
        end = self.at(chain, pointer)
        if end is not None and block > end:
            self.report.add(
                pointer, "range", f"{time.shown()} is after asOf, which is block {end:,}."
            )
        self._check_known(contract, chain, block, pointer)
        return block

    def blocks(
        self, span: TimeRange, chain: Chain, pointer: str, contract: Contract | None = None
    ) -> Range:
        """Return the blocks of a window, up to the segment's time; ``contract``: in which its transfers are sought."""
        if self._is_reversed(span, chain):
            self.report.add(
                pointer, "range", 'The window is empty: "after" is later than "before".'
            )
        # Inclusive on both ends: the first block not before "after", the last one not after "before".
        first = last = None
        if span.after is not None:
            first = self._block_of(span.after, chain, below(pointer, "after"), first=True)
            self._warn_of_start(span.after, first, chain, below(pointer, "after"), contract)
        if span.before is not None:
            last = self._block_of(span.before, chain, below(pointer, "before"))
        # What came after asOf had not happened yet, whatever the window says.
        end = self.at(chain, "/filters/asOf")
        if end is not None:
            last = end if last is None else min(end, last)
        latest = self.dataset.clock.last(chain.id)[0] if last is None else last
        # Not an error: of a chain whose data is young, the right answer to "before 2020" is nobody.
        empty = latest < 0 or (first or 0) > latest
        if empty or latest < self.extents[chain.id].first_block:
            self.warn(f"{pointer}: no block of the data is in this window.")
        if empty:
            return NO_BLOCKS
        return Range(first, last)

    def _warn_of_start(
        self, time: Time, first: int | None, chain: Chain, pointer: str, contract: Contract | None
    ) -> None:
        """Warn of a window that begins before the data does: what was there before cannot be counted."""
        extent = self.extents[chain.id]
        begin = extent.first_block
        if first is None or first > begin or begin == 0:
            return
        # Of a contract that says when it was deployed, later transfers are there, or said to be missing.
        if contract and (contract.deployed_block or extent.covers(contract.address, 0, begin)):
            return
        asked, starts = self._timestamp(time, chain), self.dataset.clock.moment(chain.id, begin)[0]
        # Within the hour is a file that is cut by days: it begins with the first row of its day.
        if asked < starts - 3600 if asked and starts else first < begin:
            at = f", at {iso(starts)}" if starts else ""
            line = f"the data of {chain.name} begins with block {begin:,}{at}"
            self.warn(f"{pointer}: {line}: what was before is not counted.")

    def timed(
        self,
        chain: Chain,
        pointer: str,
        advice: str = "Give a block number instead.",
        *,
        every: bool = False,
    ) -> bool:
        """Check that the data has block times of a chain; where days are counted, of ``every`` block."""
        untimed, blocks = self.dataset.clock.untimed(chain.id)
        if untimed < blocks and not (every and untimed):
            return True
        some = (
            f"times of {blocks - untimed:,} of {blocks:,} blocks"
            if untimed < blocks
            else "no block times"
        )
        self.report.add(pointer, "no-times", f"The data has {some} for {chain.name}. {advice}")
        return False

    def _as_of(self, chain: Chain, time: Time) -> int | None:
        """Return the block of ``asOf`` on a chain, which is a moment of ``as_of_chain``."""
        pointer, clock, known = "/filters/asOf", self.dataset.clock, self.as_of_chain
        assert known is not None
        if chain != known:
            # A time that this chain can tell.
            stamp = self._timestamp(time, known)
            if time.block is not None:
                stamp = clock.moment(known.id, time.block)[0]
            last = clock.last(chain.id)[1]
            # Chains end at different times; a minute's lag of one must not refuse a segment across both.
            if stamp is not None and last is not None and stamp > last:
                line = f"the data of {chain.name} ends at {iso(last)}, before asOf: its last block is used."
                self.warn(line)
                stamp = last
            if stamp is None:
                lacks = f"The data of {known.name} has no block time for {time.shown()}"
                self.report.add(pointer, "no-times", f"{lacks} to find it on {chain.name}.")
                return None
            time = Time(time.text, timestamp=stamp)
        block = self._moment(time, chain, pointer)
        # The end of the data is what the prepared tables hold: no need to ask the history.
        return None if block == clock.last(chain.id)[0] else block

    def _end(self, time: Time, chain: Chain) -> tuple[str, int | None]:
        """Return what a span counts back from, and its second: the data ends at asOf to all times but itself.

        That is the last block until then that the data knows of.
        """
        clock, at = self.dataset.clock, None if time is self.as_of else self.ats.get(chain.id)
        if at is None:
            return "the last block", clock.last(chain.id)[1]
        return "asOf", clock.moment(chain.id, clock.newest(chain.id, at))[0]

    def _timestamp(self, time: Time, chain: Chain) -> int | None:
        """Return the seconds since 1970 of a time that is not a block."""
        return time.seconds(self._end(time, chain)[1])

    def _block_of(
        self, time: Time, chain: Chain, pointer: str, *, first: bool = False
    ) -> int | None:
        """Return the last block at or before a time, or the ``first`` at or after it; None after an error was reported.

        Before the data begins that is the block before its first.
        """
        if time.block is not None:
            if day := time_hint(time.block):
                self.warn(f"{pointer}: {time.text} is a block.{day}")
            # The canonical form of a window without blocks is beyond every chain.
            if time.block == NO_BLOCKS.low or time.block <= self.extents[chain.id].last_block:
                return time.block
            self._report_outside(time, chain, pointer, "after the end of")
            return None
        if not self.timed(chain, pointer):
            return None
        end, last = self._end(time, chain)
        stamp = time.seconds(last)
        # The clock finds the last block at or before a time: the one after it is the first not before.
        clock, same = self.dataset.clock, first and not time.is_within
        found = None if stamp is None else clock.block_at(chain.id, stamp - same)
        if found is not None:
            return Block(found + first, time.written(end))
        # Blocks without a time may be from before it or after: either guess would be wrong half of the time.
        where = end if stamp is None else f"some blocks around {time.shown()}"
        detail = (
            f"The data of {chain.name} has no time for {where}. Give a block "
            "number instead, or ingest a file with the times of its blocks."
        )
        self.report.add(pointer, "no-times", detail)
        return None

    def _moment(self, time: Time, chain: Chain, pointer: str) -> int | None:
        """Return the last block at or before a time within the data of a chain; None after an error was reported."""
        block = self._block_of(time, chain, pointer)
        if block is None:
            return None
        last, end = self.dataset.clock.last(chain.id)
        # The clock answers a time after the end with the last block; that it is later must not pass unsaid.
        asked = self._timestamp(time, chain) if block == last else None
        late = False
        if end is not None and asked is not None and asked > end:
            late = not time.day or asked - 86_399 > end
            if not late:
                line = f"the data of {chain.name} ends at {iso(end)}, before {time.text} ends."
                self.warn(f"{pointer}: {line}")
        if self.extents[chain.id].first_block <= block <= last and not late:
            return block
        where = "after the end of" if late or block > last else "before the start of"
        self._report_outside(time, chain, pointer, where)
        return None

    def _report_outside(self, time: Time, chain: Chain, pointer: str, where: str) -> None:
        extent = self.extents[chain.id]
        end = extent.last_timestamp
        until = "" if end is None else f", the last at {iso(end)}"
        held = f"{chain.name} has blocks {extent.first_block:,} to {extent.last_block:,}{until}"
        detail = f"{time.shown()} is {where} the data: {held}.{time_hint(time.block or 0)}"
        self.report.add(pointer, "range", detail)

    def _is_reversed(self, span: TimeRange, chain: Chain) -> bool:
        if span.after is None or span.before is None:
            return False
        # In time, not in blocks: two times between the same two blocks are a window, though no block lies in it.
        both = (span.after, span.before)
        starts, ends = ((time.block, self._timestamp(time, chain)) for time in both)
        pairs = zip(starts, ends, strict=True)
        return any(start is not None and end is not None and start > end for start, end in pairs)


def own_chain(query: ParsedQuery, saved: SavedRequest = lambda _: None) -> Chain:
    """Return the chain that a query names; else Ethereum, or where all conditions name others, the first of these.

    Whatever else the data holds: a block number means the same when another chain comes in.
    """
    named = list(_chains(query.root, saved))
    others = [] if DEFAULT_CHAIN in named else named
    return query.scope.chain or [*others, DEFAULT_CHAIN][0]


def _chains(node: Parsed, saved: SavedRequest) -> Iterator[Chain]:
    if isinstance(node, ParsedGroup):
        for child in node.children:
            yield from _chains(child, saved)
    elif node.name == "segment":
        request: Mapping[str, Any] = saved(node.values["id"]) or {}
        # Its own, which its conditions may name alone.
        own = request.get("chain") or request.get("filters", {}).get("chain")
        yield chain_of(own or DEFAULT_CHAIN.id)
    elif "chain" in node.kinds:
        yield node.values.get("chain", DEFAULT_CHAIN)


def notes_on(contract: Contract, chain: Chain, extent: ChainExtent) -> list[str]:
    """Return a line for each reason why what is said of a contract may be incomplete, or wrong."""
    who = f"{contract_name(contract)} on {chain.name}"
    lacks, notes = list[str](), list[str]()
    gaps = [gap for gap in extent.gaps if not extent.covers(contract.address, *gap)]
    deployed = contract.deployed_block
    if (
        deployed is not None
        and deployed < extent.first_block
        and not extent.covers(contract.address, deployed, extent.first_block)
    ):
        lacks.append(
            f"the data starts at block {extent.first_block:,}, and the contract at {deployed:,}"
        )
    if gaps:
        lacks.append(f"the data has no row of {_widest(gaps)}")
    if unread := extent.uncovered(contract.address, deployed or 0):
        lacks.append(f"{_widest(unread)} were not fetched")
    if contract.below_zero:
        wallets = f"{contract.below_zero:,} wallet{'s' * (contract.below_zero != 1)}"
        lacks.append(
            f"balances of {wallets} are below zero at some block, which no wallet can have, and are left out there"
        )
    if ids := missing_mints(contract):
        lacks.append(ids)
    if lacks:
        notes.append(f"{who}: transfers are missing: {'; '.join(lacks)}.")
    if (compared := extent.differing.get(contract.address)) is not None:
        notes.append(f"{who}: {_difference(compared, unit_of(contract))}")
    if contract.inferred:
        notes.append(f"{who}: {_inferred(contract, chain)}")
    return notes


def _inferred(contract: Contract, chain: Chain) -> str:
    kind = "a collection" if contract.is_nft else "a token"
    return (
        f"it is read as {kind} by its transfers, because no file says what it is. If it is not, ingest a "
        f"file with address, is_erc20, is_erc721: nbext ingest FILE --chain {chain.name}"
    )


def unseen_on(catalog: Catalog, chain: Chain) -> list[str]:
    """Return a line that some of a chain's collections lack mints; none where no one does."""
    number = catalog.lacking(chain.id)["unseen"]
    of = f"{number:,} collection{'s' * (number != 1)}"
    line = f"{chain.name}: mints of {of} are missing: some of their token ids were never seen to arrive."
    return [line] * bool(number)


def missing_mints(contract: Contract) -> str:
    """Return how many of a collection's ids left a wallet that never received them; nothing where none did."""
    if not contract.unseen:
        return ""
    of, one = f" of {contract.ids:,}" * bool(contract.ids), contract.unseen == 1
    ids = "id was" if one and not of else "ids was" if one else "ids were"
    return f"{contract.unseen:,}{of} {ids} never seen to arrive, so mints are missing"


def _difference(compared: Compared, units: Callable[[int], str]) -> str:
    if compared.cause == "left out":
        return (
            "transfers are missing: the node that they were fetched from left logs out. Fetch it again, from another "
            "node."
        )
    found = []
    if wrong := compared.of - compared.equal:
        found.append(
            f"{wrong:,} of {compared.of:,} balances differed from the contract's own at block {compared.block:,}"
        )
    if compared.strayed:
        found.append(
            f"{compared.strayed:,} of {compared.ids:,} token ids had another owner at block {compared.block:,}"
        )
    if compared.supply is not None and compared.minted is not None:
        supply, minted = units(compared.supply), units(compared.minted)
        found.append(
            f"its totalSupply at block {compared.block:,} was {supply}, and {minted} by its transfers"
        )
    return f"{'; '.join(found)}: {_CAUSES[compared.cause or 'unlogged']}"


def _widest(ranges: Sequence[tuple[int, int]]) -> str:
    first, last = max(ranges, key=lambda one: one[1] - one[0])
    others = len(ranges) - 1
    more = f" and of {others:,} more range{'s' * (others != 1)}" if others else ""
    return f"blocks {first:,} to {last:,}{more}"
