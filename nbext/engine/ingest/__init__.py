"""Ingest: chain data in files becomes one generation of tables.

    command      the command lines of `nbext ingest`, `nbext sources`, `nbext remove` and `nbext compact`
    run          ingest, remove and compact: lock the folder, decide what is read, run until that succeeds
    steps        the steps of one run: files in, one generation out, or one of them refused
    stage        the database that a run works in, bounded and shut off, and the generation before in it
    files        which files: given paths, folders and globs; regular files only
    formats      the formats (`formats.toml`), and which one a file is of, by its columns
    reading      a file's rows as a relation
    sources      which files were ingested, and how; what a run takes out of them
    report       what was read, and every oddity, in words (`oddities.toml`) and in numbers
    derive/      rows become integers, and these the tables of segments: balances, NFTs, activity, contracts
    cluster/     the same on Spark: files at any URL become one generation at another

`nbext.engine.storage` makes the end of a run visible in one step.
"""

from __future__ import annotations

from nbext.engine.ingest.report import Report
from nbext.engine.ingest.run import ingest, remove

__all__ = ["Report", "ingest", "remove"]
