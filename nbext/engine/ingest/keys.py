"""Which rows are new: a transfer is told by its chain, its transaction's hash and its log index.

The keys of all transfers taken in so far stand beside the tables, one Parquet file for each run: 16 bytes
of the hash (as many as make a forged twin infeasible) and the log index. A new generation shares the
files of the one before, by hard links.
"""

from __future__ import annotations

import os
import shutil

from nbext.engine.ingest.stage import Stage, quoted

_KEY = "chain_id, tx, key_index"
_STORY = "(contract, sender, recipient, hi, mid, lo, block)"


def drop_repeated(stage: Stage) -> dict[str, int]:
    """Leave out rows whose key was seen before, in this run or in an earlier one.

    The first of two rows stays. Returns how many were left out (``duplicates``), and how many of those
    told another story under the same key (``conflicts``: a reorganised block, or an altered file).
    """
    stage.run(f"CREATE TABLE twins AS SELECT {_KEY} FROM incoming GROUP BY ALL HAVING count(*) > 1")
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
    duplicates = stage.value("SELECT count(*) FROM repeated")
    if duplicates:
        stage.run("DELETE FROM incoming USING repeated r WHERE incoming.file = r.file AND incoming.row = r.row")
    stage.drop("twins", "repeated")
    return {"duplicates": duplicates, "conflicts": conflicts}


def save(stage: Stage) -> None:
    """Write the keys of the new rows beside the tables, and share those of the generation before."""
    folder = stage.building / "keys"
    folder.mkdir()
    shared = sorted((stage.previous.folder / "keys").glob("*.parquet")) if stage.previous else []
    for path in shared:
        try:
            os.link(path, folder / path.name)
        except OSError:  # a file system without hard links
            shutil.copyfile(path, folder / path.name)
    target = folder / f"{len(shared) + 1:06d}.parquet"
    stage.run(f"COPY (SELECT {_KEY} FROM incoming ORDER BY block, log_index) "
              f"TO {quoted(target)} (FORMAT parquet, COMPRESSION zstd)")


def _before(stage: Stage) -> str:
    assert stage.previous is not None
    return f"SELECT {_KEY} FROM read_parquet({quoted(stage.previous.folder / 'keys')} || '/*.parquet')"
