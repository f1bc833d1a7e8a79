"""Ingest: chain data in files becomes one generation of tables.

    command      the command line of `nbext ingest`
    run          one run, step by step: files in, one generation out, or nothing
    stage        the database that a run works in: bounded in memory, shut off from the outside
    report       what was read, and every oddity, in words and in numbers
    sources/     files, their kinds, their rows as text, and what token lists say of contracts
    derive/      rows become integers, and these the tables of segments: balances, history, owners, activity, contracts

`nbext.engine.storage` makes the end of a run visible in one step.
"""

from __future__ import annotations

from nbext.engine.ingest.report import Report
from nbext.engine.ingest.run import ingest

__all__ = ["Report", "ingest"]
