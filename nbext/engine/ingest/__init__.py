"""Ingest: chain data in files becomes one generation of tables.

The walk of a run, one module for each step:

    sources     which files: given paths, folders, globs; regular files only
    kinds       what each file is, told by its columns
    reading     a file as rows of text in the stage, each with its number
    tokens      what is known of contracts: tokens, contracts, token lists
    snapshots   balances at one block
    wallets     addresses become ranks, each distinct one once
    transfers   rows become integers; bad rows are set apart
    keys        rows already taken in are left out
    standards   which contracts are ERC20 and which are NFTs
    derive      balances, owners, history
    activity    who was active, when, and how often
    report      what was taken in, and every oddity, in plain words

`holdings` adds up, in arrays and exactly (`parts`), what each wallet held and when. `run` does the walk;
`nbext.engine.storage.generation` makes its end visible in one step.
"""

from __future__ import annotations

from nbext.engine.ingest.report import Report
from nbext.engine.ingest.run import ingest

__all__ = ["Report", "ingest"]
