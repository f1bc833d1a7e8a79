"""A synthetic sample, so that every magic answers at once, without an account and without chain data.

The contracts in `known` have their true addresses, symbols and decimals. Everything else is made up by
code from a fixed seed: the wallets' addresses, the transfers, the blocks and the spam contracts. Nothing
in it says anything about a real person, and no figure counted in it is a fact about a chain.

The prepared tables are shipped, since unpacking them is thirty times faster than making them. How they
are made: each story (`tokens`, `airdrops`, `nfts`) writes transfers into a `diary`, `transfers` puts them
into blocks, `tables` derives the tables of `nbext.engine.schema`, and `prepare` writes them to files.
"""

from __future__ import annotations

from pathlib import Path

from nbext.engine.sample.unpack import ensure_sample

__all__ = ["ensure_sample", "write_example_files"]


def write_example_files(folder: str | Path) -> list[Path]:
    """Write small example files to try `nbext ingest` on: see `nbext.engine.sample.examples`."""
    from nbext.engine.sample import examples

    return examples.write_example_files(folder)
