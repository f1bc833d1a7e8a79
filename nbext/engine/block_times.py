"""Turn times into blocks and blocks into times, from the blocks that the data knows the times of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nbext.engine.dataset import ChainExtent, Tables

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from nbext.engine.catalog import Reader


class TableClock:
    """The clock of a generation; the table of blocks is asked, never loaded."""

    def __init__(self, read: Reader, chains: Iterable[ChainExtent]) -> None:
        self._read = read
        self._chains = {chain.chain_id: chain for chain in chains}

    def last(self, chain_id: int) -> tuple[int, int | None]:
        """Return the chain's last block and its time; (0, None) for a chain that the data does not have."""
        chain = self._chains.get(chain_id)
        return (chain.last_block, chain.last_timestamp) if chain else (0, None)

    def block_at(self, chain_id: int, timestamp: int) -> int | None:
        """Return the last block at or before the time.

        Before the data begins that is the block before its first. None where the data does not
        say: the chain has no times, or the blocks around that moment have none.
        """
        known = self._read("clock-known", _last_at_or_before, (chain_id, timestamp))["block"][0].as_py()
        after = self._read("clock-after", _first_after, (chain_id, -1 if known is None else known)).to_pylist()
        # A block without a time may lie before or after the asked one: half of the answers would be wrong.
        if after and after[0]["timestamp"] is None:
            return None
        if known is None:
            return after[0]["block"] - 1 if after else None
        return int(known)

    def timestamp_of(self, chain_id: int, block: int) -> int | None:
        """Return the block's time in seconds since 1970; None where the data has none."""
        found = self._read("clock-time", _of_block, (chain_id, block))["timestamp"].to_pylist()
        return found[0] if found else None


def _last_at_or_before(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    blocks, (chain_id, timestamp) = tables["blocks"], scalars
    return blocks.filter(blocks.chain_id == chain_id, blocks.timestamp <= timestamp).agg(block=blocks.block.max())


def _first_after(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    blocks, (chain_id, block) = tables["blocks"], scalars
    later = blocks.filter(blocks.chain_id == chain_id, blocks.block > block)
    return later.select("block", "timestamp").order_by("block").limit(1)


def _of_block(tables: Tables, scalars: Sequence[Any]) -> ir.Table:
    blocks, (chain_id, block) = tables["blocks"], scalars
    return blocks.filter(blocks.chain_id == chain_id, blocks.block == block).select("timestamp")
