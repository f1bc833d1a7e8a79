"""What each wallet did on each chain, and the blocks that the data knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.stage import Stage, ahead
from nbext.engine.ingest.transfers.rows import check_times

DAY = 86_400
# Transfers whose wallets are worked at a time: 64 MB of packed integers.
SHARE = 4_000_000
# A wallet's rank, a block's number and one bit fit 64 bits, so that one sort of integers does it all.
_BLOCK_BITS = 31


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
    check_times(stage, file)
    seconds, block = file.seconds(), f"TRY_CAST({file.text('block')} AS BIGINT)"
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
    for found in ahead(_activities(stage)):
        stage.insert("out.activity", found)
    stage.run("DROP TABLE IF EXISTS numbered")


def _activities(stage: Stage) -> Iterator[Callable[[], pa.Table]]:
    wallets = stage.value("SELECT count(*) FROM wallets")
    for chain, timed in stage.rows("SELECT chain_id, timed FROM extents ORDER BY chain_id"):
        stage.run("CREATE OR REPLACE TEMP TABLE numbered AS "
                  "SELECT block, (row_number() OVER (ORDER BY block) - 1)::INTEGER AS nth "
                  "FROM out.blocks WHERE chain_id = $1", [chain])
        calendar = stage.arrow(f"SELECT block, timestamp // {DAY} AS day FROM out.blocks WHERE chain_id = {chain} "
                               "ORDER BY block")
        blocks, days = calendar["block"].to_numpy(), calendar["day"].to_numpy() if timed else None
        rows = stage.value("SELECT count(*) FROM out.transfers SEMI JOIN "
                           "(FROM contract_chain WHERE chain_id = $1) USING (contract)", [chain])
        shares = -(-rows // SHARE) or 1
        for share in range(shares):
            some = range(wallets * share // shares, wallets * (share + 1) // shares)
            yield partial(_active, chain, _seen(stage, chain, some), blocks, days)


def _seen(stage: Stage, chain: int, wallets: range) -> np.ndarray:
    """Return an integer for each time that a wallet was seen: wallet, number of the block, and if a transfer was.

    Who is only known from a snapshot took part in no transfer, and was seen all the same.
    """
    of_chain = f"JOIN numbered USING (block) SEMI JOIN (FROM contract_chain WHERE chain_id = {chain}) USING (contract)"
    within = f"BETWEEN {wallets.start} AND {wallets.stop - 1}"
    moved = stage.arrow(f"SELECT sender, recipient, nth FROM out.transfers {of_chain} "
                        f"WHERE sender {within} OR recipient {within}")
    opened = stage.arrow(f"SELECT wallet, nth FROM opened {of_chain} WHERE wallet {within}")
    sender, recipient, nth = (moved[column].to_numpy() for column in ("sender", "recipient", "nth"))
    sides = [(sender, nth, (sender != recipient) & (sender >= wallets.start) & (sender < wallets.stop), 1),
             (recipient, nth, (recipient >= wallets.start) & (recipient < wallets.stop), 1),
             (opened["wallet"].to_numpy(), opened["nth"].to_numpy(), slice(None), 0)]
    return np.concatenate([_packed(wallet[rows], nth[rows], moved) for wallet, nth, rows, moved in sides])


def _packed(wallet: np.ndarray, nth: np.ndarray, moved: int) -> np.ndarray:
    packed: np.ndarray = wallet.astype(np.int64)
    packed <<= _BLOCK_BITS
    packed |= nth
    packed <<= 1
    packed |= moved
    return packed


def _active(chain: int, seen: np.ndarray, blocks: np.ndarray, days: np.ndarray | None) -> pa.Table:
    """Add up what was seen, wallet by wallet."""
    seen.sort()
    wallet, nth, moved = seen >> _BLOCK_BITS + 1, seen >> 1 & (1 << _BLOCK_BITS) - 1, seen & 1
    starts = _starts(wallet)
    lasts = np.append(starts, len(seen))[1:] - 1
    found = pa.table({
        "chain_id": np.full(len(starts), chain), "wallet": wallet[starts],
        "first_block": blocks[nth[starts]], "last_block": blocks[nth[lasts]],
        "transfers": np.add.reduceat(moved, starts) if len(starts) else starts,
    })
    if days is None:
        return found.append_column("active_days", pa.nulls(len(starts), pa.int64()))
    rows = np.flatnonzero(moved)
    day = wallet[rows] << _BLOCK_BITS | days[nth[rows]]
    if (np.diff(days) < 0).any():  # a block that is told a time before the one before it
        day.sort()
    new = np.zeros(len(seen), np.int64)
    new[rows[_starts(day)]] = 1
    return found.append_column("active_days", [np.add.reduceat(new, starts) if len(starts) else starts])


def _starts(ordered: np.ndarray) -> np.ndarray:
    """Return the rows at which another value begins."""
    return np.flatnonzero(np.concatenate([np.ones(min(len(ordered), 1), bool), ordered[1:] != ordered[:-1]]))
