"""Derive the tables that segments query from the transfers: changes of NFTs, history, balances, blocks and activity.

Contracts are worked through in buckets, so that memory is bounded by a bucket and not by the data.
Transfers are sorted by contract: a bucket reads only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

from nbext.core.times import utc_text
from nbext.engine.ingest.derive import holdings
from nbext.engine.ingest.derive.duplicates import CONFLICTS_SHOWN, Conflict, conflict_text
from nbext.engine.ingest.derive.holdings import NOBODY
from nbext.engine.ingest.derive.rows import DECIMAL, check_columns, decimal
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.stage import Stage, ahead, name
from nbext.engine.query.amounts import as_amounts
from nbext.engine.schema import FOREVER, LIMBS, SQL_TYPES, TABLES

DAY = 86_400
_PERIOD = 60  # days, as bits of one number
_UPPER = ("hi", "mid", "id_hi", "id_mid")
# Beside the layout's columns, for ingest alone (`nbext.engine.ingest.stage`).
_ORIGIN = (
    "source INTEGER USING COMPRESSION BITPACKING",
    "row BIGINT USING COMPRESSION BITPACKING",
    "given BIGINT USING COMPRESSION RLE",
)
_PLAIN = {
    ("wallets", "address"),
    ("balances", "lo"),
    ("history", "lo"),
    ("transfers", "lo"),
    ("nft_changes", "id_lo"),
    ("nft_changes", "change"),
}
EVERYBODY = range(2**31 - 1)
# Where the opening balances of a snapshot stand in their block: before every log.
OPENING = -1
# A transfer without its count.
ROW = "contract, block, log_index, sender, recipient, hi, mid, lo"
# Of the rows of history, those that are balances.
STANDS = f"to_block = {FOREVER} AND sort_key <> 0"


@dataclass(frozen=True)
class Bucket:
    """Contracts that are processed together: the first, the last, their rows, and whether one limb is too few."""

    first: int
    last: int
    rows: int
    wide: bool


def create_tables(stage: Stage) -> None:
    """Create the empty tables of the layout."""
    for table, columns in TABLES.items():
        described = [f"{name(c)} {SQL_TYPES[t]}{_packed(table, c)}" for c, t in columns.items()]
        if table == "transfers":
            described += _ORIGIN
        stage.run(f"CREATE TABLE out.{table} ({', '.join(described)})")


def _packed(table: str, column: str) -> str:
    """Return the SQL that says how a column is compressed, where that is not left to DuckDB."""
    # Of addresses and balances a segment reads few among many: unpacking their neighbours took half its time.
    if (table, column) in _PLAIN:
        return " USING COMPRESSION UNCOMPRESSED"
    # The upper limbs are nearly all 0 or -1. Left to choose, DuckDB packs their bits, and then reading them takes
    # longer than all other columns together (0.2 microseconds a value); runs of equal values do not.
    if column in _UPPER or (column == "contract" and table != "contracts"):
        return " USING COMPRESSION RLE"
    # Trying what else could pack an integer takes as long as writing it.
    return " USING COMPRESSION BITPACKING" if TABLES[table][column] in ("int32", "int64") else ""


def derive_holdings(
    stage: Stage, zero: int, advance: Callable[[float], None], of: str = ""
) -> None:
    """Fill history, balances and changes of NFTs from ``out.transfers`` and the openings.

    ``of`` is the SQL of a join that says of which contracts.
    """
    create_profile(stage, of)
    shared = shares_of(stage)
    tasks = sum(map(len, shared.values()))
    for done, rows in enumerate(ahead(_histories(stage, zero, shared)), 1):
        stage.insert("out.history", rows, with_amounts("arriving"))
        advance(done / tasks)
    save_balances(stage, of)
    stage.drop("moves", "held_before", "token_changes")


def with_amounts(histories: str) -> str:
    """Return the query of ``history`` from rows of `holdings.history`."""
    return as_amounts(histories, "contract, wallet, from_block, to_block")


def save_balances(stage: Stage, of: str = "") -> None:
    """Add to ``out.balances`` what stands in ``out.history`` last; ``of`` as of `derive_holdings`."""
    stage.run(
        f"INSERT INTO out.balances SELECT {', '.join(TABLES['balances'])} FROM out.history {of} WHERE {STANDS}"
    )


def _histories(
    stage: Stage, zero: int, shared: dict[Bucket, list[range]]
) -> Iterator[Callable[[], pa.Table]]:
    """Yield the history of each bucket as tasks, share by share, and save the changes of its NFTs."""
    for bucket, shares in shared.items():
        rows = _effective(stage, bucket)
        derive_changes(stage, rows, zero)
        save_changes(stage)
        for wallets in shares:
            found = stage.arrow(flowing(rows, wide=bucket.wide, wallets=wallets))
            yield partial(holdings.history, found, wallets)


def create_profile(stage: Stage, of: str = "", rows: str = "out.transfers") -> None:
    """Create ``profile``: how many rows each contract has, whether it is an NFT, and whether one limb is enough.

    Its ``first_block`` is the one that its holdings begin with: that of its snapshot, or else the chain's first.
    """
    stage.run(f"""
        CREATE OR REPLACE TABLE profile AS
        SELECT contract, sum(n)::BIGINT AS n, standard <> 'ERC20' AS nft, standard = 'ERC1155' AS multi,
            standard = 'ERC20' AND (max(hi) > 0 OR max(mid) > 0) AS wide,
            coalesce(max(opened_at), any_value(first_block)) AS first_block
        FROM (SELECT contract, count(*) AS n, max(hi) AS hi, max(mid) AS mid, NULL::BIGINT AS opened_at
              FROM {rows} GROUP BY 1
              UNION ALL SELECT contract, count(*), max(hi), max(mid), max(block) FROM opened GROUP BY 1)
        JOIN standards USING (contract) JOIN contract_chain USING (contract) LEFT JOIN extents USING (chain_id) {of}
        GROUP BY contract, standard ORDER BY contract""")


def shares_of(stage: Stage) -> dict[Bucket, list[range]]:
    """Return the contracts of ``profile``, in buckets, each with the ranges of wallets to process one after another.

    Memory holds the rows of a bucket. Popular tokens have more: of these it holds those of a range.
    """
    wallets = stage.value("SELECT count(*) FROM wallets")
    buckets: list[Bucket] = []
    for contract, rows, wide in stage.rows(
        "SELECT contract, n, wide FROM profile ORDER BY contract"
    ):
        last = buckets[-1] if buckets else None
        if last and last.rows + rows <= stage.bucket_rows:
            buckets[-1] = Bucket(last.first, contract, last.rows + rows, last.wide or wide)
        else:
            buckets.append(Bucket(contract, contract, rows, wide))
    shared = {}
    for bucket in buckets:
        shares = -(-bucket.rows // stage.bucket_rows)
        cuts = [wallets * n // shares for n in range(shares + 1)]
        shared[bucket] = [range(low, high) for low, high in pairwise(cuts)]
    return shared


def _effective(stage: Stage, bucket: Bucket) -> str:
    """Return the SQL of the bucket's transfers: a snapshot replaces all transfers up to its block."""
    columns = "contract, block, log_index, sender, recipient, hi, mid, lo, count"
    within = f"contract BETWEEN {bucket.first} AND {bucket.last}"
    rows = f"SELECT {columns} FROM out.transfers t WHERE {within}"
    # Without a snapshot, which is the rule, the rows need no join.
    if stage.value(f"SELECT count(*) FROM opened WHERE {within}"):
        rows = f"""
            SELECT {columns} FROM out.transfers t
            ANTI JOIN (SELECT contract, max(block) AS until FROM opened GROUP BY 1) o
                ON o.contract = t.contract AND t.block <= o.until
            WHERE {within}
            UNION ALL SELECT contract, block, {OPENING}, {NOBODY}, wallet, hi, mid, lo, 1
            FROM opened WHERE {within}"""
    return f"(SELECT * FROM ({rows}) JOIN profile USING (contract))"


def derive_changes(stage: Stage, rows: str, zero: int) -> None:
    """Create ``token_changes``, what transfers and openings add to ``nft_changes``, and ``held_before`` of it.

    A token id of an ERC721 leaves whoever owned it before, also where a log is missing and another wallet sends it on.
    Whoever sends an id first, or more of an ERC1155's id than came to them, had it when the contract's holdings begin:
    a count below zero exists on no chain. Minting takes from nobody. An ERC1155's id that is sent to oneself moves
    nothing, and was there to send.
    """
    token, known = "contract, hi, mid, lo", f"sender NOT IN ({zero}, {NOBODY})"
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE moves AS
        SELECT {token}, block, log_index, recipient, 1::HUGEINT AS count, multi, prior, first_block, 0 AS passed,
            coalesce(prior, CASE WHEN {known} THEN sender END) AS loser
        FROM (SELECT *, lag(recipient) OVER (PARTITION BY {token} ORDER BY block, log_index) AS prior
              FROM {rows} WHERE nft AND NOT multi)
        UNION ALL SELECT {token}, block, log_index, recipient, count::HUGEINT, multi, NULL, first_block,
            CASE WHEN sender = recipient THEN count ELSE 0 END, CASE WHEN {known} THEN sender END
        FROM {rows} WHERE multi AND (sender <> recipient OR {known})""")
    sides = f"""
        SELECT {token}, recipient AS wallet, block, log_index, count AS change, passed, multi, first_block FROM moves
        UNION ALL SELECT {token}, loser, block, log_index, -count, passed, multi, first_block FROM moves
        WHERE loser IS NOT NULL"""
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE held_before AS
        SELECT {token}, loser AS wallet, first_block AS block, count AS change FROM moves
        WHERE NOT multi AND prior IS NULL AND loser IS NOT NULL
        UNION ALL SELECT {token}, wallet, any_value(first_block), -min(lowest) FROM (
            SELECT *, sum(change) OVER (PARTITION BY {token}, wallet ORDER BY block, log_index) - passed AS lowest
            FROM ({sides}) WHERE multi)
        GROUP BY {token}, wallet HAVING min(lowest) < 0""")
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE token_changes AS
        SELECT {token}, wallet, block, sum(change)::{DECIMAL} AS change
        FROM (SELECT {token}, wallet, block, change FROM ({sides}) UNION ALL FROM held_before)
        GROUP BY {token}, wallet, block HAVING sum(change) <> 0""")


def save_changes(stage: Stage) -> None:
    """Add ``token_changes`` to ``out.nft_changes``; those that stand for what was stored before have no block."""
    stage.run(
        "INSERT INTO out.nft_changes SELECT * FROM token_changes WHERE block >= 0 "
        "ORDER BY contract, hi, mid, lo, block, wallet"
    )


def flowing(rows: str, *, wide: bool, wallets: range) -> str:
    """Return the SQL of what moved from whom to whom: amounts, and of ``token_changes`` how many token ids."""
    nothing, limbs = decimal(0), ", ".join(LIMBS if wide else LIMBS[-1:])
    upper = f"{nothing}, {nothing}, " if wide else ""
    within = f"BETWEEN {wallets.start} AND {wallets.stop - 1}"
    return f"""
        SELECT contract, block, log_index, sender, recipient, {limbs} FROM {rows}
        WHERE NOT nft AND sender <> recipient AND NOT (lo = {nothing} AND mid = {nothing} AND hi = {nothing})
            AND (sender {within} OR recipient {within})
        UNION ALL
        FROM (SELECT contract, block, 0::BIGINT, {NOBODY}, wallet, {upper}sum(change)::{DECIMAL} FROM token_changes
              WHERE wallet {within} GROUP BY contract, wallet, block HAVING sum(change) <> 0
              ORDER BY contract, block)"""


def take_hashes(stage: Stage, file: FileTable) -> None:
    """Note the hashes of the blocks of a file of transfers: with its rows they would take half of their memory."""
    if file.has("block_hash"):
        stage.run(
            f"INSERT INTO hashes SELECT DISTINCT {file.number}, {file.chain}, {file.block}, {file.block_hash} "
            f"FROM {file.relation} WHERE {file.block_hash} IS NOT NULL AND NOT {file.removed}"
        )


def take_blocks(stage: Stage, file: FileTable) -> None:
    """Add the times and hashes of a blocks file.

    Raises
    ------
    IngestError
        The times are not in seconds.
    """
    check_columns(stage, file)
    seconds, block = file.seconds(), file.whole("block")
    good = f"coalesce({block} >= 0 AND {seconds} >= 0, false)"
    stage.run(
        f"INSERT INTO bad SELECT {file.number}, row, 'block number or time is not a whole number', "
        f"left(concat_ws(' ', {file.text('block')}, {file.text('timestamp')}), 200) "
        f"FROM {file.relation} WHERE NOT {good}"
    )
    stage.run(
        f"INSERT INTO times SELECT DISTINCT {file.number}, {file.chain}, {block}, {seconds}, {file.block_hash} "
        f"FROM {file.relation} WHERE {good}"
    )


def take_blocks_of_transfers(stage: Stage) -> None:
    """Add the blocks of the rows that were read, also of those that repeat a transfer."""
    stage.run(
        "INSERT INTO times SELECT file, chain_id, block, seconds, hash FROM "
        "(SELECT DISTINCT file, chain_id, block, seconds FROM incoming) LEFT JOIN hashes USING (file, chain_id, block)"
    )


def find_two(stage: Stage) -> tuple[str, int] | None:
    """Create ``two``, the times or hashes (``told``) of the blocks that have several by now.

    Return what they are, a word and the first such block; None where each block has one. Blocks that no file of this
    run names are not looked at.
    """
    for word, column in (("times", "seconds"), ("hashes", "hash")):
        stored = (
            f"UNION ALL SELECT source, chain_id, block, {column} FROM prev.ingest.blocks "
            "SEMI JOIN times USING (chain_id, block)"
            if stage.previous
            else ""
        )
        said = f"(SELECT source, chain_id, block, {column} AS told FROM times {stored})"
        stage.run(
            f"CREATE OR REPLACE VIEW two AS SELECT DISTINCT * FROM {said} SEMI JOIN (SELECT chain_id, block FROM "
            f"{said} GROUP BY 1, 2 HAVING min(told) <> max(told)) USING (chain_id, block) WHERE told IS NOT NULL"
        )
        if (found := stage.value("SELECT min(block) FROM two")) is not None:
            return word, int(found)
    return None


def time_or_hash(value: int | str) -> str:
    """Return a time or a hash as it is shown."""
    return value if isinstance(value, str) else str(utc_text(value))


class Backward(NamedTuple):
    """A block with a time before that of the block before it."""

    block: int
    source: int
    seconds: int
    block_before: int
    source_before: int
    seconds_before: int


def find_backward_times(stage: Stage) -> list[Backward]:
    """Return the first blocks with a time before that of an earlier one, one of the two of this run's files."""
    timed = "SELECT chain_id, block, seconds, min(source) AS source FROM {0} WHERE seconds IS NOT NULL GROUP BY 1, 2, 3"
    stored = ""
    if (
        stage.previous
    ):  # only from the last block before those of this run on: of a day of blocks that is one
        stored = (
            "UNION ALL "
            + timed.format("""(SELECT p.* FROM prev.ingest.blocks p JOIN (
            SELECT chain_id, max(p.block) FILTER (p.block < first) AS before FROM prev.ingest.blocks p JOIN (
                SELECT chain_id, min(block) AS first FROM times WHERE seconds IS NOT NULL GROUP BY 1) USING (chain_id)
            WHERE seconds IS NOT NULL GROUP BY 1) USING (chain_id) WHERE block >= coalesce(before, 0))""")
        )
    return [
        Backward(*one)
        for one in stage.rows(f"""
        SELECT block, source, seconds, block_before, source_before, seconds_before FROM (
            SELECT *, lag(block) OVER w AS block_before, lag(seconds) OVER w AS seconds_before,
                lag(source) OVER w AS source_before
            FROM ({timed.format("times")} {stored}) WINDOW w AS (PARTITION BY chain_id ORDER BY block, seconds))
        WHERE seconds < seconds_before AND (source IN (SELECT source FROM times)
            OR source_before IN (SELECT source FROM times)) ORDER BY block LIMIT 3""")
    ]


def collect_blocks(stage: Stage) -> None:
    """Fill ``out.ingest.blocks``: the blocks that each source names."""
    before = (
        "SELECT source, chain_id, block, seconds, hash FROM prev.ingest.blocks UNION ALL"
        if stage.previous
        else ""
    )
    stage.run(
        f"CREATE TABLE out.ingest.blocks AS {before} SELECT source, chain_id, block, seconds, hash FROM times"
    )


def save_blocks(stage: Stage) -> None:
    """Fill ``out.blocks``: every block with a transfer or a time."""
    # A snapshot's own time counts where its block has no other. Of several times none would be right for all.
    stage.run("""
        INSERT INTO out.blocks
        SELECT chain_id, block,
            coalesce(min(seconds) FILTER (source IS NOT NULL),
                CASE WHEN min(seconds) = max(seconds) THEN min(seconds) END),
            max(hash)
        FROM (
            SELECT source, chain_id, block, seconds, hash FROM out.ingest.blocks
            UNION ALL SELECT DISTINCT NULL::INTEGER, chain_id, block, seconds, NULL::VARCHAR FROM placed)
        GROUP BY 1, 2 ORDER BY 1, 2""")


def save_extents(stage: Stage, blocks: str = "out.blocks") -> None:
    """Create ``extents``: the first and last block of each chain, and the last block's time and hash."""
    stage.run(f"""
        CREATE TABLE extents AS
        SELECT e.chain_id, first_block, last_block, timestamp AS last_timestamp, hash AS last_hash, timed
        FROM (SELECT chain_id, min(block) AS first_block, max(block) AS last_block, count(*) = count(timestamp) AS timed
              FROM {blocks} GROUP BY 1) e
        JOIN {blocks} b ON b.chain_id = e.chain_id AND b.block = e.last_block ORDER BY 1""")


def save_activity(stage: Stage) -> None:
    """Fill ``out.activity``. Days are counted on chains all of whose blocks have a time."""
    # The days of a period are bits of one number. To group by day first takes nearly twice as long, and a
    # count(DISTINCT day) would hold a set of days for each of millions of wallets, which cannot spill. Transfers find
    # their blocks once, and not for each side again.
    # A holder known from a snapshot alone took part in no transfer, and was seen all the same. Who had an NFT before
    # the data begins was seen from then on, and active when it was sent.
    stage.run(f"""
        INSERT INTO out.activity
        SELECT chain_id, wallet, min(seen), min(first_block), max(last_block), sum(n)::BIGINT,
            CASE WHEN any_value(timed) THEN coalesce(sum(bit_count(days))::BIGINT, 0) END
        FROM (
            SELECT chain_id, wallet, period, min(block) AS seen, min(block) AS first_block, max(block) AS last_block,
                count(*) AS n, bit_or(day) AS days
            FROM (SELECT chain_id, block, period, day,
                      unnest(CASE WHEN sender = recipient THEN [sender] ELSE [sender, recipient] END) AS wallet
                  FROM out.transfers JOIN contract_chain USING (contract) JOIN (
                      SELECT chain_id, block, timestamp // {DAY * _PERIOD} AS period,
                          1::BIGINT << (timestamp // {DAY} % {_PERIOD})::INTEGER AS day
                      FROM out.blocks) USING (chain_id, block))
            GROUP BY chain_id, wallet, period
            UNION ALL SELECT chain_id, wallet, NULL, block, block, block, 0, NULL FROM out.snapshot_wallets
            UNION ALL SELECT DISTINCT chain_id, wallet, NULL, first_block, NULL, NULL, 0, NULL FROM out.nft_changes
                JOIN (SELECT contract, first_block FROM profile WHERE nft) USING (contract)
                JOIN contract_chain USING (contract) WHERE block = first_block)
        JOIN (SELECT chain_id, timed FROM extents) USING (chain_id)
        GROUP BY chain_id, wallet ORDER BY chain_id, wallet""")


def mixed_blocks(stage: Stage) -> Conflict | None:
    """Return the error of block numbers beside seconds that stand for them: they are in no order with each other."""
    # A chain's numbers are far from its seconds, which are above 10**9 since 2001.
    same = "block = seconds AND block > 1000000000 AS by_time"
    stored = (
        f"UNION ALL SELECT source, chain_id, {same} FROM prev.ingest.blocks"
        if stage.previous
        else ""
    )
    mixed = stage.rows(f"""
        SELECT max(source) FROM (
            SELECT source, chain_id, {same} FROM times {stored}
            UNION ALL SELECT source, chain_id, false FROM openings WHERE block IS NOT NULL)
        GROUP BY chain_id HAVING count(DISTINCT coalesce(by_time, false)) > 1""")
    if not mixed:
        return None
    why = (
        "some files of this chain have block numbers and others only times, which nbext cannot put in order. Map a "
        "column with block numbers (--map theirs=block), or ingest the others into a folder of their own (--data)."
    )
    return stage.fault(mixed[0][0], why), None


def time_conflict(stage: Stage) -> Conflict | None:
    """Return the error of another time or hash of a block that has one, or of a time before an earlier block's."""
    if two := find_two(stage):
        return _two(stage, *two)
    found = find_backward_times(stage)
    if not found:
        return None
    sources = {one.source for one in found} | {one.source_before for one in found}
    lines = [
        f"  block {one.block_before:,}: {utc_text(one.seconds_before)} in {stage.shown(one.source_before)}, "
        f"block {one.block:,}: {utc_text(one.seconds)} in {stage.shown(one.source)}"
        for one in found
    ]
    source, inside = max(sources), len(sources) == 1
    text = conflict_text(found[0].block_before, lines, len(found), inside=inside)
    why = f"a block has a time before that of an earlier block. {text}"
    return stage.fault(source, why), source if inside else None


def _two(stage: Stage, word: str, first: int) -> Conflict:
    within = stage.value(
        "SELECT min(source) FROM (SELECT source FROM two GROUP BY source, chain_id, block "
        f"HAVING count(*) > 1) WHERE source >= {stage.first}"
    )
    which = "" if within is None else f"WHERE source = {within}"
    found = stage.rows(f"""
        SELECT block, list((source, told) ORDER BY source, told) FROM (
            SELECT chain_id, block, told, min(source) AS source FROM two {which} GROUP BY 1, 2, 3)
        GROUP BY chain_id, block HAVING count(*) > 1 ORDER BY block""")
    lines = [
        f"  block {block:,}: "
        + ", ".join(f"{time_or_hash(value)} in {stage.shown(source)}" for source, value in both)
        for block, both in found[:CONFLICTS_SHOWN]
    ]
    many = "1 block has" if len(found) == 1 else f"{len(found):,} blocks have"
    source = max(source for _, both in found for source, _ in both)
    text = conflict_text(first, lines, len(found), inside=within is not None)
    return stage.fault(source, f"{many} two {word}. {text}"), within
