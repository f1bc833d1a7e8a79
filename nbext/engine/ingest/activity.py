"""What each wallet did on each chain, and the blocks that the data knows."""

from __future__ import annotations

from nbext.engine.ingest.reading import Opened
from nbext.engine.ingest.stage import Stage
from nbext.engine.ingest.transfers import LATEST
from nbext.errors import IngestError

DAY = 86_400


def begin(stage: Stage) -> None:
    """Make the table of block times."""
    stage.run("CREATE TABLE times (chain_id BIGINT, block BIGINT, seconds BIGINT)")


def take_blocks(stage: Stage, file: Opened, chain: int) -> None:
    """Add the times of a blocks file.

    Raises
    ------
    IngestError
        The times are not in seconds.
    """
    seconds, block = file.seconds(), f"TRY_CAST({file.text('block')} AS BIGINT)"
    late = stage.rows(f"SELECT row, {seconds} FROM {file.relation} WHERE {seconds} > {LATEST} ORDER BY row LIMIT 1")
    if late:
        row, value = late[0]
        raise IngestError(f"{file.source.path}, row {row}: timestamp is {value}, which looks like milliseconds. "
                          "Times are seconds since 1970.", path=file.source.name, row=row)
    good = f"coalesce({block} >= 0 AND {seconds} >= 0, false)"
    stage.run(f"INSERT INTO bad SELECT {file.number}, row, 'block number or time is not a whole number', "
              f"left(concat_ws(' ', {file.text('block')}, {file.text('timestamp')}), 200) "
              f"FROM {file.relation} WHERE NOT {good}")
    stage.run(f"INSERT INTO times SELECT {chain}, {block}, {seconds} FROM {file.relation} WHERE {good}")


def save_blocks(stage: Stage) -> None:
    """Fill ``out.blocks``: every block with a transfer or a time; of two times the first taken in stays."""
    before = "UNION ALL SELECT chain_id, block, timestamp, 0 FROM prev.main.blocks" if stage.previous else ""
    stage.run(f"""
        INSERT INTO out.blocks
        SELECT chain_id, block, first(seconds ORDER BY age, seconds) FILTER (seconds IS NOT NULL) FROM (
            SELECT chain_id, block, seconds, 1 AS age FROM times
            UNION ALL SELECT chain_id, block, seconds, 1 FROM
                (SELECT DISTINCT chain_id, block, seconds FROM incoming) {before}
            UNION ALL SELECT chain_id, block, NULL, 2 FROM openings)
        GROUP BY 1, 2 ORDER BY 1, 2""")


def save_extents(stage: Stage) -> None:
    """Make ``extents``: the first and last block of each chain, and the last block's time."""
    stage.run("""
        CREATE TABLE extents AS SELECT chain_id, min(block) AS first_block, max(block) AS last_block,
            max(timestamp) AS last_timestamp, count(*) = count(timestamp) AS timed
        FROM out.blocks GROUP BY 1 ORDER BY 1""")


def save_activity(stage: Stage) -> None:
    """Fill ``out.activity``. Days are counted on chains all of whose blocks have a time."""
    stage.run(f"CREATE TEMP TABLE days AS SELECT chain_id, block, timestamp // {DAY} AS day "
              "FROM out.blocks JOIN extents USING (chain_id) WHERE timed")
    # Who is only known from a snapshot took part in no transfer, and was seen all the same.
    sides = """
        SELECT contract, sender AS wallet, block, 1 AS moved FROM out.transfers
        UNION ALL SELECT contract, recipient, block, 1 FROM out.transfers WHERE sender <> recipient
        UNION ALL SELECT contract, wallet, block, 0 FROM opened"""
    # By day first: that many fewer rows are left to count days in.
    stage.run(f"""
        INSERT INTO out.activity
        SELECT chain_id, wallet, min(first_block), max(last_block), sum(n)::BIGINT,
            CASE WHEN count(day) = count(*) THEN (count(*) FILTER (n > 0))::INTEGER END
        FROM (
            SELECT chain_id, wallet, day, min(block) AS first_block, max(block) AS last_block, sum(moved) AS n
            FROM ({sides}) JOIN contract_chain USING (contract) LEFT JOIN days USING (chain_id, block)
            GROUP BY 1, 2, 3)
        GROUP BY 1, 2 ORDER BY 1, 2""")
    stage.drop("days")
