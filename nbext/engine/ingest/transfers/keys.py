"""Find the rows that are new: a transfer is identified by its chain, its transaction's hash and its log index.

The keys of all transfers ingested so far are stored beside the tables, one Parquet file for each run: 16 bytes
of the hash (as many as make a forged twin infeasible) and the log index. A new generation shares the
files of the one before, by hard links.
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pyarrow as pa

from nbext.engine.ingest.stage import Stage, quoted
from nbext.engine.ingest.transfers.rows import MADE_UP

# Keys whose hashes are in memory together: 128 MB.
AT_ONCE = 16_000_000
_KEY = "chain_id, tx, key_index"
_HASH = f"hash({_KEY})"
_STORY = "(contract, sender, recipient, hi, mid, lo, block)"


def drop_repeated(stage: Stage) -> dict[str, int]:
    """Remove rows whose key was seen before, in this run or in an earlier one.

    The first of two rows stays. Returns how many were removed (``duplicates``), and how many of those
    have other contents under the same key (``conflicts``: a reorganised block, or an altered file).
    """
    _find_twins(stage)
    stage.run(f"""
        CREATE TABLE repeated AS SELECT file, row, conflict FROM (
            SELECT file, row, row_number() OVER w AS nth, coalesce(
                {_STORY} <> first({_STORY}) OVER w, false) AS conflict
            FROM incoming SEMI JOIN twins USING ({_KEY}) WINDOW w AS (PARTITION BY {_KEY} ORDER BY file, row))
        WHERE nth > 1""")
    conflicts = stage.value("SELECT count(*) FROM repeated WHERE conflict")
    if stage.previous:
        stage.run(f"""
            INSERT INTO repeated SELECT file, row, false FROM incoming SEMI JOIN ({_before(stage)}) k USING ({_KEY})
            ANTI JOIN (SELECT file, row FROM repeated) r USING (file, row)""")
    told_twice = _repeat_by_contents(stage)
    duplicates = stage.value("SELECT count(*) FROM repeated")
    if duplicates:
        stage.run("DELETE FROM incoming USING repeated r WHERE incoming.file = r.file AND incoming.row = r.row")
    stage.drop("twins", "repeated")
    return {"duplicates": duplicates, "conflicts": conflicts, "told_twice": told_twice}


def _repeat_by_contents(stage: Stage) -> int:
    """Add to ``repeated`` the rows that another source has under a key of another sort; return how many.

    A row without a log index has no key in common with the same transfer from a source with log indexes. Both
    sources have every transfer of a contract between two wallets in a block: of k such rows of one amount with a log
    index and n without, the larger number is kept: those with a log index first, and of these the ones ingested before.
    """
    loose = f"log_index >= {MADE_UP}"
    here = stage.value(f"SELECT count(*) FROM incoming WHERE {loose}")
    before = stage.previous and stage.value(f"SELECT count(*) FROM prev.main.transfers WHERE {loose}")
    if not here and not before:
        return 0
    story = "contract, sender, recipient, hi, mid, lo, block"
    stage.run(f"CREATE TEMP TABLE taken AS SELECT {story}, log_index FROM ({_taken_before(stage)})")
    # Rows without a log index that this run or an earlier one has; and rows with one that an earlier run has without.
    stage.run(f"""
        CREATE TEMP TABLE told_twice AS
        SELECT file, row FROM (
            SELECT file, row, {story}, row_number() OVER (PARTITION BY file, {story} ORDER BY row) AS nth
            FROM incoming WHERE {loose})
        JOIN (SELECT {story}, count(*) AS n FROM (
                SELECT {story} FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {loose}
                UNION ALL SELECT {story} FROM taken WHERE NOT {loose}) GROUP BY ALL) USING ({story})
        WHERE nth <= n
        UNION ALL
        SELECT file, row FROM (
            SELECT file, row, {story}, row_number() OVER (PARTITION BY {story} ORDER BY file, row) AS nth
            FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {loose})
        JOIN (SELECT {story}, count(*) AS n FROM taken WHERE {loose} GROUP BY ALL) USING ({story})
        WHERE nth <= n""")
    stage.run("DELETE FROM told_twice USING repeated r WHERE told_twice.file = r.file AND told_twice.row = r.row")
    stage.run("INSERT INTO repeated SELECT file, row, false FROM told_twice")
    found = int(stage.value("SELECT count(*) FROM told_twice"))
    stage.drop("taken", "told_twice")
    return found


def _taken_before(stage: Stage) -> str:
    """Return the SQL of the earlier transfers of the blocks that occur again, by this run's ranks."""
    columns = "block, log_index, hi, mid, lo"
    if not stage.previous:
        return f"SELECT contract, sender, recipient, {columns} FROM incoming WHERE false"
    return f"""
        SELECT c.rowid::INTEGER AS contract, s.rowid::INTEGER AS sender, r.rowid::INTEGER AS recipient, {columns}
        FROM (SELECT * FROM prev.main.transfers SEMI JOIN (SELECT block FROM incoming) USING (block)) t
        JOIN prev.main.contracts pc ON pc.contract = t.contract
        JOIN contract_ranks c ON c.chain_id = pc.chain_id AND c.address = pc.address
        JOIN prev.main.wallets ps ON ps.wallet = t.sender JOIN wallets s ON s.address = ps.address
        JOIN prev.main.wallets pr ON pr.wallet = t.recipient JOIN wallets r ON r.address = pr.address"""


def _find_twins(stage: Stage) -> None:
    """Create ``twins``: the keys that more than one row has."""
    # Nearly no key is repeated. Sorting 64-bit hashes in an array takes a quarter of the time of grouping by the
    # keys; only where two hashes are the same are keys compared.
    shares = -(-stage.value("SELECT count(*) FROM incoming") // AT_ONCE)
    found = [np.empty(0, np.uint64)]
    for share in range(shares):
        hashes = stage.arrow(f"SELECT {_HASH} AS h FROM incoming WHERE {shares} = 1 OR h % {shares} = {share}")
        ordered = np.sort(hashes["h"].to_numpy())
        found.append(ordered[1:][ordered[1:] == ordered[:-1]])
    stage.run("CREATE TEMP TABLE alike (h UBIGINT)")
    stage.insert("alike", pa.table({"h": np.unique(np.concatenate(found))}))
    stage.run(f"CREATE TABLE twins AS SELECT {_KEY} FROM incoming WHERE {_HASH} IN (FROM alike) "
              "GROUP BY ALL HAVING count(*) > 1")
    stage.drop("alike")


def save(stage: Stage) -> None:
    """Write the keys of the new rows beside the tables, and share those of the generation before."""
    folder = stage.building / "keys"
    folder.mkdir()
    shared = sorted((stage.previous.folder / "keys").glob("*.parquet")) if stage.previous else []
    # Links: with copies, every run would pay for the keys of all runs before it.
    for path in shared:
        try:
            os.link(path, folder / path.name)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, folder / path.name)
    # Hashes do not compress: the fastest codec loses nothing.
    target = folder / f"{len(shared) + 1:06d}.parquet"
    stage.run(f"COPY (SELECT {_KEY} FROM incoming) TO {quoted(target)} (FORMAT parquet, COMPRESSION snappy)")


def _before(stage: Stage) -> str:
    assert stage.previous is not None
    return f"SELECT {_KEY} FROM read_parquet({quoted(stage.previous.folder / 'keys')} || '/*.parquet')"
