"""From what people write to what the data holds: symbols and addresses to contracts, times to blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbext.core.addresses import checksummed, looks_like_address
from nbext.core.chains import CHAINS, Chain
from nbext.core.constants import NFT_STANDARDS
from nbext.core.untrusted_text import shown
from nbext.errors import did_you_mean
from nbext.language.errors import Report
from nbext.language.times import Time, iso

if TYPE_CHECKING:
    from nbext.engine.dataset import Contract, Dataset



@dataclass
class Names:
    """Looks names up in one dataset, and notes what it does not find."""

    dataset: Dataset
    report: Report
    _unknown_chains: set[int] = field(default_factory=set)

    def has(self, chain: Chain) -> bool:
        """Say whether the data holds anything of a chain."""
        return any(extent.chain_id == chain.id for extent in self.dataset.about.chains)

    def chain(self, chain: Chain, pointer: str) -> bool:
        """Check that the data holds a chain; one that it does not is noted once."""
        # Ten conditions on a chain that is not there are one mistake.
        if self.has(chain) or chain.id in self._unknown_chains:
            return self.has(chain)
        self._unknown_chains.add(chain.id)
        held = ", ".join(name_of(extent.chain_id) for extent in self.dataset.about.chains) or "no chain"
        self.report.add(pointer, "chain", f"the data holds nothing of {chain.name}. It holds: {held}.")
        return False

    def contract(self, text: str, chain: Chain, pointer: str, *, nft: bool) -> Contract | None:
        """Return the one contract of an address or symbol."""
        if looks_like_address(text):
            return self._at(text, chain, pointer, nft=nft)
        found = list(self.dataset.catalog.by_symbol(chain.id, text, nft=nft))
        # Never the "best" of several: anyone can give a contract the symbol USDC.
        if len(found) == 1:
            return found[0]
        if found:
            self._ambiguous(text, found, chain, pointer)
        else:
            self._unknown(text, chain, pointer, nft=nft)
        return None

    def _at(self, address: str, chain: Chain, pointer: str, *, nft: bool) -> Contract | None:
        found = self.dataset.catalog.contract(chain.id, address)
        if found is None:
            chains, catalog = self.dataset.about.chains, self.dataset.catalog
            others = [extent.chain_id for extent in chains if catalog.contract(extent.chain_id, address)]
            hint = f" It holds one on {', '.join(map(name_of, others))}: give that as chain." if others else ""
            detail = f"the data holds no contract {checksummed(address)} on {chain.name}.{hint}"
            self.report.add(pointer, "unknown-contract", detail)
        elif found.standard is not None and (found.standard in NFT_STANDARDS) != nft:
            wanted = "an NFT collection" if nft else "an ERC20 token"
            other = "token" if nft else "nft"
            detail = f"{checksummed(address)} is {found.standard}, not {wanted}. Ask for it with {other!r}."
            self.report.add(pointer, "standard", detail)
            return None
        return found

    def _ambiguous(self, symbol: str, found: list[Contract], chain: Chain, pointer: str) -> None:
        some = ", ".join(checksummed(contract.address) for contract in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        detail = f"{len(found)} contracts on {chain.name} bear {shown(symbol)}: {some}{more}. Give the address."
        candidates: list[Any] = [
            {"chain": chain.name, "address": one.address, "symbol": one.symbol, "name": one.name} for one in found
        ]
        self.report.ambiguous(pointer, detail, candidates)

    def _unknown(self, symbol: str, chain: Chain, pointer: str, *, nft: bool) -> None:
        what, catalog = "collection" if nft else "token", self.dataset.catalog
        hint = did_you_mean(symbol, [one for one in catalog.symbols(chain.id, nft=nft) if one])
        if not hint and catalog.by_symbol(chain.id, symbol, nft=not nft):
            hint = f" There is {'a token' if nft else 'a collection'} of that symbol: ask for it with " \
                   f"{'token' if nft else 'nft'!r}."
        elsewhere = [e.chain_id for e in self.dataset.about.chains if catalog.by_symbol(e.chain_id, symbol, nft=nft)]
        if elsewhere:
            hint = f" It holds one on {', '.join(map(name_of, elsewhere))}: give that as chain."
        detail = f"the data holds no {what} with the symbol {shown(symbol)} on {chain.name}."
        self.report.add(pointer, "unknown-symbol", detail + hint)

    def timestamp(self, time: Time, chain: Chain) -> int | None:
        """Return the seconds since 1970 of a time that is not a block."""
        if time.timestamp is not None:
            return time.timestamp
        last = self.dataset.clock.last(chain.id)[1]
        return None if last is None or time.back is None else last - time.back

    def timed(self, chain: Chain, pointer: str, advice: str = "Give a block number instead.") -> bool:
        """Check that the data has block times of a chain."""
        if self.dataset.clock.last(chain.id)[1] is not None:
            return True
        self.report.add(pointer, "no-times", f"the data has no block times for {chain.name}. {advice}")
        return False

    def last_block(self, time: Time, chain: Chain, pointer: str) -> int | None:
        """Return the last block at or before a time; -1 where that is before the data."""
        if time.block is not None:
            return time.block
        if not self.timed(chain, pointer):
            return None
        found = self.dataset.clock.block_at(chain.id, self.timestamp(time, chain) or 0)
        return -1 if found is None else found

    def first_block(self, time: Time, chain: Chain, pointer: str) -> int | None:
        """Return the first block at or after a time."""
        if time.block is not None:
            return time.block
        if not self.timed(chain, pointer):
            return None
        # The clock tells the last block at or before a time: the one after it is the first not before.
        before = self.dataset.clock.block_at(chain.id, (self.timestamp(time, chain) or 0) - 1)
        return 0 if before is None else before + 1

    def within_data(self, block: int, chain: Chain, time: Time, pointer: str) -> bool:
        """Check that a block lies within the data of its chain."""
        extent = next(one for one in self.dataset.about.chains if one.chain_id == chain.id)
        first, last = extent.first_block, extent.last_block
        # The clock answers a time after the end with the last block; that it is later must not pass unsaid.
        late = time.block is None and block == last and self._after_the_end(time, chain)
        if first <= block <= last and not late:
            return True
        where = "after the end of" if late or block > last else "before the start of"
        span = f"blocks {first:,} to {last:,}" + (
            f", the last at {iso(extent.last_timestamp)}" if extent.last_timestamp is not None else ""
        )
        self.report.add(pointer, "range", f"{time.shown()} is {where} the data: {chain.name} has {span}.")
        return False

    def _after_the_end(self, time: Time, chain: Chain) -> bool:
        last = self.dataset.clock.last(chain.id)[1]
        asked = self.timestamp(time, chain)
        return last is not None and asked is not None and asked > last


def name_of(chain_id: int) -> str:
    """Return a chain's name, or its CAIP-2 identifier where it has none here."""
    return next((chain.name for chain in CHAINS if chain.id == chain_id), f"eip155:{chain_id}")
