"""Ingest: chain data in files becomes one generation of tables.

    command      the command line of `nbext ingest`
    compact      the command line of `nbext compact`
    run          ingest, remove and compact: lock the folder, decide what is read, run until that succeeds
    steps        the steps of one run: files in, one generation out, or one of them refused
    stage        the database that a run works in: bounded in memory, shut off from the outside
    previous     the generation before, in today's layout, and without what a run takes out
    taken        which files were ingested, and how; the command line of `nbext sources`
    removal      the command line of `nbext remove`
    report       what was read, and every oddity, in words and in numbers
    sources/     files, their kinds, their rows as text, and what token lists say of contracts
    derive/      rows become integers, and these the tables of segments: balances, history, owners, activity, contracts
    cluster/     the same on Spark: files at any URL become one generation at another

`nbext.engine.storage` makes the end of a run visible in one step.
"""

from __future__ import annotations

from nbext.engine.ingest.report import Report
from nbext.engine.ingest.run import ingest, remove

__all__ = ["Report", "ingest", "remove"]
