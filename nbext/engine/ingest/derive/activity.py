"""Activity: what each wallet did on each chain, and the blocks of the data with their times."""

from __future__ import annotations

from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.stage import Stage
from nbext.engine.ingest.transfers.rows import check_times

DAY = 86_400


def begin(stage: Stage) -> None:
    """Create the table of block times."""
    stage.run("CREATE TABLE times (chain_id BIGINT, block BIGINT, seconds BIGINT)")


def take_blocks(stage: Stage, file: Opened, chain: int) -> None:
    """Add the times of a blocks file.

    Raises
    ------
    IngestError
        The times are not in seconds.
    """
    check_times(stage, file)
    seconds, block = file.seconds(), f"TRY_CAST({file.text('block')} AS BIGINT)"
    good = f"coalesce({block} >= 0 AND {seconds} >= 0, false)"
    stage.run(f"INSERT INTO bad SELECT {file.number}, row, 'block number or time is not a whole number', "
              f"left(concat_ws(' ', {file.text('block')}, {file.text('timestamp')}), 200) "
              f"FROM {file.relation} WHERE NOT {good}")
    stage.run(f"INSERT INTO times SELECT {chain}, {block}, {seconds} FROM {file.relation} WHERE {good}")


def save_blocks(stage: Stage) -> None:
    """Fill ``out.blocks``: every block with a transfer or a time; of two times the one ingested first wins."""
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
    """Create ``extents``: the first and last block of each chain, and the last block's time."""
    stage.run("""
        CREATE TABLE extents AS SELECT chain_id, min(block) AS first_block, max(block) AS last_block,
            max(timestamp) AS last_timestamp, count(*) = count(timestamp) AS timed
        FROM out.blocks GROUP BY 1 ORDER BY 1""")


def save_activity(stage: Stage) -> None:
    """Fill ``out.activity``. Days are counted on chains all of whose blocks have a time."""
    # By day first: a count(DISTINCT day) would hold a set of days for each of millions of wallets, which cannot spill.
    # A holder known from a snapshot alone took part in no transfer, and was seen all the same: moved is 0.
    stage.run(f"""
        INSERT INTO out.activity
        SELECT chain_id, wallet, min(first_block), max(last_block), sum(n)::BIGINT,
            CASE WHEN any_value(timed) THEN count(*) FILTER (n > 0) END
        FROM (
            SELECT chain_id, wallet, timestamp // {DAY} AS day, min(block) AS first_block, max(block) AS last_block,
                sum(moved) AS n
            FROM (SELECT sender AS wallet, contract, block, 1 AS moved FROM out.transfers
                  UNION ALL SELECT recipient, contract, block, 1 FROM out.transfers WHERE sender <> recipient
                  UNION ALL SELECT wallet, contract, block, 0 FROM opened)
            JOIN contract_chain USING (contract) JOIN out.blocks USING (chain_id, block) GROUP BY ALL)
        JOIN (SELECT chain_id, timed FROM extents) USING (chain_id)
        GROUP BY chain_id, wallet ORDER BY chain_id, wallet""")
