"""What segments are asked of, derived from the transfers: history, balances, owners.

Contracts are worked through in buckets, so that memory is bounded by a bucket and not by the data.
Transfers are sorted by contract: a bucket reads only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable

from nbext.engine import size
from nbext.engine.ingest import amounts, transfers
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.layout import FOREVER, TABLES

BUCKET_ROWS = 4_000_000
_SQL_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN",
              "decimal(38,0)": "DECIMAL(38,0)"}
_UPPER = ("hi", "mid", "id_hi", "id_mid")
_PLAIN = {("wallets", "address"), ("balances", "lo")}
# A contract whose amounts cannot add up to this is summed in HUGEINT, which ends at 1.7e38.
_NARROW = "1e37"
# Where an opening balance stands in its block: before every log. Openings known from a snapshot, and
# token ids whose first transfer shows that the sender had them already.
OPENING = -1
_HELD_BEFORE = -2


def create_tables(stage: Stage) -> None:
    """Make the empty tables of the layout.

    The upper limbs are nearly all 0 or -1. Left to choose, DuckDB packs their bits, and then reading them
    takes longer than all other columns together (0.2 microseconds a value); runs of equal values do not.
    Of addresses and balances a segment reads few among many: unpacking their neighbours took half its time.
    """
    for table, columns in TABLES.items():
        described = (f"{name(c)} {_SQL_TYPES[t]}{_packed(table, c)}" for c, t in columns.items())
        stage.run(f"CREATE TABLE out.{table} ({', '.join(described)})")


def _packed(table: str, column: str) -> str:
    """Return the SQL that says how a column is compressed, where that is not left to DuckDB."""
    how = "UNCOMPRESSED" if (table, column) in _PLAIN else "RLE" if column in _UPPER else ""
    return how and f" USING COMPRESSION {how}"


def derive(stage: Stage, zero: int, advance: Callable[[float], None]) -> None:
    """Fill history, balances and owners from ``out.transfers`` and the openings."""
    _profile(stage)
    buckets = _buckets(stage)
    for done, (first, last) in enumerate(buckets, 1):
        rows = _effective(stage, first, last)
        _follow_tokens(stage, rows)
        stage.run("INSERT INTO out.owners SELECT contract, hi, mid, lo, recipient, 1 FROM moves WHERE latest "
                  "ORDER BY contract, hi, mid, lo, recipient")
        wide = stage.value(f"SELECT count(*) FROM profile WHERE NOT nft AND NOT narrow "
                           f"AND contract BETWEEN {first} AND {last}")
        _history(stage, rows, zero, wide=bool(wide))
        advance(done / len(buckets))
    stage.drop("moves")
    stage.run(f"""
        INSERT INTO out.balances SELECT contract, wallet, hi, mid, lo, size FROM out.history
        WHERE to_block = {FOREVER} AND (lo <> {amounts.decimal(0)} OR mid <> {amounts.decimal(0)}
            OR hi <> {amounts.decimal(0)})""")


def _profile(stage: Stage) -> None:
    """Say of each contract how its rows are to be worked: how many, NFT or not, summed narrow or wide."""
    stage.run(f"""
        CREATE TABLE profile AS
        SELECT contract, sum(n)::BIGINT AS n, standard <> 'ERC20' AS nft, standard = 'ERC1155' AS multi,
            max(hi) = 0 AND (max(mid)::DOUBLE + 1) * 1e26 * 2 * sum(n) < {_NARROW} AS narrow,
            any_value(first_block) AS first_block
        FROM (SELECT contract, count(*) AS n, max(hi) AS hi, max(mid) AS mid FROM out.transfers GROUP BY 1
              UNION ALL SELECT contract, count(*), max(hi), max(mid) FROM opened GROUP BY 1)
        JOIN standards USING (contract) JOIN contract_chain USING (contract) LEFT JOIN extents USING (chain_id)
        GROUP BY contract, standard ORDER BY contract""")


def _buckets(stage: Stage) -> list[tuple[int, int]]:
    buckets: list[tuple[int, int]] = []
    size = 0
    for contract, rows in stage.rows("SELECT contract, n FROM profile ORDER BY contract"):
        if buckets and size + rows <= BUCKET_ROWS:
            buckets[-1] = (buckets[-1][0], contract)
            size += rows
        else:
            buckets.append((contract, contract))
            size = rows
    return buckets


def _effective(stage: Stage, first: int, last: int) -> str:
    """Return the SQL of the bucket's transfers: a snapshot stands for all that came up to its block."""
    columns = "contract, block, log_index, sender, recipient, hi, mid, lo"
    within = f"contract BETWEEN {first} AND {last}"
    rows = f"SELECT {columns} FROM out.transfers t WHERE {within}"
    if stage.value(f"SELECT count(*) FROM opened WHERE {within}"):
        rows = f"""
            SELECT {columns} FROM out.transfers t
            ANTI JOIN (SELECT contract, max(block) AS until FROM opened GROUP BY 1) o
                ON o.contract = t.contract AND t.block <= o.until
            WHERE {within}
            UNION ALL SELECT contract, block, {OPENING}, -1, wallet, hi, mid, lo FROM opened WHERE {within}"""
    return f"(SELECT * FROM ({rows}) JOIN profile USING (contract))"


def _follow_tokens(stage: Stage, rows: str) -> None:
    """Make ``moves``: each transfer of a token id with who owned it before, wherever a log may be missing."""
    custody = "PARTITION BY contract, hi, mid, lo, CASE WHEN multi THEN recipient END ORDER BY block, log_index"
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE moves AS
        SELECT *, coalesce(prior, sender) AS owner FROM (
            SELECT contract, block, log_index, sender, recipient, hi, mid, lo, first_block,
                lag(recipient) OVER w AS prior, lead(recipient) OVER w IS NULL AS latest
            FROM {rows} WHERE nft WINDOW w AS ({custody}))""")


def _amount_changes(rows: str, which: str, plus: str, minus: str) -> str:
    """Return the SQL of what each transfer of an ERC20 adds to one wallet and takes from another."""
    nothing = " AND ".join(f"{limb} = {amounts.decimal(0)}" for limb in ("lo", "mid", "hi"))
    moved = f"FROM {rows} WHERE NOT nft AND {which} AND sender <> recipient AND NOT ({nothing})"
    # A snapshot's balances come from nowhere: no wallet has less for them.
    return (f"SELECT contract, recipient AS wallet, block, log_index, {plus} {moved} UNION ALL "
            f"SELECT contract, sender AS wallet, block, log_index, {minus} {moved} AND sender >= 0")


def _count_changes(zero: int) -> str:
    """Return the SQL of how many token ids each wallet has more or less, by ``moves``.

    The owner before has one less, also where a log is missing and another wallet sends the id on. Whoever
    sends an id first had it since before the data begins.
    """
    one = amounts.decimal(1)
    known = f"(prior IS NOT NULL OR sender NOT IN ({zero}, -1))"
    return f"""
        SELECT contract, wallet, block, log_index, sum(v) AS v FROM (
            SELECT contract, recipient AS wallet, block, log_index, {one} AS v FROM moves
                WHERE recipient <> owner OR NOT {known}
            UNION ALL SELECT contract, owner, block, log_index, -{one} FROM moves WHERE recipient <> owner AND {known}
            UNION ALL SELECT contract, sender, first_block, {_HELD_BEFORE}, {one} FROM moves
                      WHERE prior IS NULL AND {known})
        GROUP BY 1, 2, 3, 4"""


def _history(stage: Stage, rows: str, zero: int, *, wide: bool) -> None:
    """Add up the bucket's changes, wallet by wallet, to the balances that stood between them."""
    holding, moment = transfers.pair("contract", "wallet"), transfers.moment(stage)
    window = f"WINDOW w AS (PARTITION BY {holding} ORDER BY {moment} ROWS UNBOUNDED PRECEDING)"
    until = f"coalesce(lead(block) OVER w, {FOREVER}) AS to_block"
    place = "contract, wallet, block, log_index"
    amount = amounts.whole("mid", "lo")
    changes = _amount_changes(rows, "narrow", f"{amount} AS v", f"-({amount}) AS v")
    hi, mid, lo = amounts.normal("total")
    parts = [f"""
        SELECT {place}, to_block, {hi} AS hi, {mid} AS mid, {lo} AS lo, {amounts.size('digits')} AS size
        FROM (SELECT {place}, {until}, sum(v) OVER w AS total, total::VARCHAR AS digits
              FROM ({changes} UNION ALL {_count_changes(zero)}) {window})"""]
    if wide:
        sums = ", ".join(f"(sum({limb}) OVER w)::HUGEINT AS {limb}" for limb in ("hi", "mid", "lo"))
        hi, mid, lo = amounts.carried("hi", "mid", "lo")
        changes = _amount_changes(rows, "NOT narrow", "hi, mid, lo", "-hi AS hi, -mid AS mid, -lo AS lo")
        parts.append(f"""
            SELECT *, {size.sql('hi', 'mid', 'lo')} AS size FROM (
                SELECT {place}, to_block, {hi} AS hi, {mid} AS mid, {lo} AS lo
                FROM (SELECT {place}, {until}, {sums} FROM ({changes}) {window}))""")
    stage.run(f"INSERT INTO out.history SELECT contract, wallet, block, to_block, hi, mid, lo, size "
              f"FROM ({' UNION ALL '.join(parts)}) ORDER BY {holding}, {moment}")
