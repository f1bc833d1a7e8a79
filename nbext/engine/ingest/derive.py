"""What segments are asked of, derived from the transfers: history, balances, owners.

Contracts are worked through in buckets, so that memory is bounded by a bucket and not by the data.
Transfers are sorted by contract: a bucket reads only its own rows.
"""

from __future__ import annotations

from collections.abc import Callable

from nbext.engine import size
from nbext.engine.ingest import amounts
from nbext.engine.ingest.stage import Stage, name
from nbext.engine.layout import FOREVER, TABLES

BUCKET_ROWS = 4_000_000
_SQL_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN",
              "decimal(38,0)": "DECIMAL(38,0)"}
# A contract whose amounts cannot add up to this is summed in HUGEINT, which ends at 1.7e38.
_NARROW = "1e37"
# Where an opening balance stands in its block: before every log. Openings known from a snapshot, and
# token ids whose first transfer shows that the sender had them already.
OPENING = -1
_HELD_BEFORE = -2


def create_tables(stage: Stage) -> None:
    """Make the empty tables of the layout."""
    for table, columns in TABLES.items():
        stage.run(f"CREATE TABLE out.{table} ({', '.join(f'{name(c)} {_SQL_TYPES[t]}' for c, t in columns.items())})")


def derive(stage: Stage, zero: int, advance: Callable[[float], None]) -> None:
    """Fill history, balances and owners from ``out.transfers`` and the openings."""
    _profile(stage)
    buckets = _buckets(stage)
    for done, (first, last) in enumerate(buckets, 1):
        _effective(stage, first, last)
        _token_changes(stage, zero)
        _collection_changes(stage, zero)
        _owners(stage)
        _history(stage)
        advance(done / len(buckets))
    stage.drop("effective", "moves", "narrow", "wide")
    stage.run(f"INSERT INTO out.balances SELECT contract, wallet, hi, mid, lo, size FROM out.history "
              f"WHERE to_block = {FOREVER} AND NOT (hi = 0 AND mid = 0 AND lo = 0)")


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


def _effective(stage: Stage, first: int, last: int) -> None:
    """Make the bucket's transfers: a snapshot stands for all that came up to its block."""
    columns = "contract, block, log_index, sender, recipient, hi, mid, lo"
    within = f"contract BETWEEN {first} AND {last}"
    snapshots = stage.value(f"SELECT count(*) FROM opened WHERE {within}")
    opened = (f"""ANTI JOIN (SELECT contract, max(block) AS until FROM opened GROUP BY 1) o
                    ON o.contract = t.contract AND t.block <= o.until WHERE t.{within}
                  UNION ALL SELECT contract, block, {OPENING}, -1, wallet, hi, mid, lo FROM opened WHERE {within}"""
              if snapshots else f"WHERE {within}")
    source = f"SELECT {columns} FROM out.transfers t {opened}"
    stage.run(f"CREATE OR REPLACE TEMP TABLE effective AS SELECT e.*, nft, multi, narrow, first_block "
              f"FROM ({source}) e JOIN profile USING (contract)")


def _token_changes(stage: Stage, zero: int) -> None:
    """Make the bucket's changes of ERC20 balances: one HUGEINT where sums fit, else three limbs."""
    both = """
        FROM (SELECT contract, recipient AS wallet, block, log_index, {plus} FROM effective WHERE {where}
              UNION ALL SELECT contract, sender, block, log_index, {minus} FROM effective WHERE {where} AND sender >= 0)
        """
    moved = "NOT nft AND sender <> recipient AND NOT (hi = 0 AND mid = 0 AND lo = 0) AND "
    amount = f"CASE WHEN mid = 0 THEN lo::HUGEINT ELSE mid::HUGEINT * {amounts.BASE}::HUGEINT + lo::HUGEINT END"
    stage.run("CREATE OR REPLACE TEMP TABLE narrow AS SELECT *" + both.format(
        plus=f"{amount} AS v", minus=f"-({amount})", where=moved + "narrow"))
    stage.run("CREATE OR REPLACE TEMP TABLE wide AS SELECT *" + both.format(
        plus="hi, mid, lo", minus="-hi, -mid, -lo", where=moved + "NOT narrow"))


def _collection_changes(stage: Stage, zero: int) -> None:
    """Follow each token id from owner to owner, and add the changes of how many each wallet owns.

    The owner is whoever the id went to last, also where a log is missing and another wallet sends it on:
    then that earlier owner, not the sender, has one less.
    """
    custody = "PARTITION BY contract, hi, mid, lo, CASE WHEN multi THEN recipient END ORDER BY block, log_index"
    stage.run(f"""
        CREATE OR REPLACE TEMP TABLE moves AS
        SELECT *, coalesce(prior, sender) AS owner FROM (
            SELECT contract, block, log_index, sender, recipient, hi, mid, lo, first_block,
                lag(recipient) OVER w AS prior, lead(recipient) OVER w IS NULL AS latest
            FROM effective WHERE nft WINDOW w AS ({custody}))""")
    known = f"(prior IS NOT NULL OR sender NOT IN ({zero}, -1))"
    stage.run(f"""
        INSERT INTO narrow
        SELECT contract, wallet, block, log_index, sum(v)::HUGEINT FROM (
            SELECT contract, recipient AS wallet, block, log_index, 1 AS v FROM moves WHERE recipient <> owner
            UNION ALL SELECT contract, owner, block, log_index, -1 FROM moves WHERE recipient <> owner AND {known}
            UNION ALL SELECT contract, sender, first_block, {_HELD_BEFORE}, 1 FROM moves
                      WHERE prior IS NULL AND {known})
        GROUP BY 1, 2, 3, 4""")


def _owners(stage: Stage) -> None:
    stage.run("INSERT INTO out.owners SELECT contract, hi, mid, lo, recipient, 1 FROM moves WHERE latest "
              "ORDER BY contract, hi, mid, lo, recipient")


def _history(stage: Stage) -> None:
    """Add up the bucket's changes, wallet by wallet, to the balances that stood between them."""
    window = "WINDOW w AS (PARTITION BY contract, wallet ORDER BY block, log_index ROWS UNBOUNDED PRECEDING)"
    until = f"coalesce(lead(block) OVER w, {FOREVER}) AS to_block"
    hi, mid, lo = amounts.normal("total")
    parts = [f"""SELECT contract, wallet, block, to_block, {hi} AS hi, {mid} AS mid, {lo} AS lo, log_index FROM (
        SELECT contract, wallet, block, log_index, {until}, sum(v) OVER w AS total FROM narrow {window})"""]
    if stage.value("SELECT count(*) FROM wide"):
        sums = ", ".join(f"(sum({limb}) OVER w)::HUGEINT AS {limb}" for limb in ("hi", "mid", "lo"))
        parts.append(f"""SELECT contract, wallet, block, to_block, {_carried()}, log_index FROM (
            SELECT contract, wallet, block, log_index, {until}, {sums} FROM wide {window})""")
    stage.run(f"INSERT INTO out.history SELECT contract, wallet, block, to_block, hi, mid, lo, "
              f"{size.sql('hi', 'mid', 'lo')} FROM ({' UNION ALL '.join(parts)}) "
              f"ORDER BY contract, wallet, block, log_index")


def _carried() -> str:
    base = f"{amounts.BASE}::HUGEINT"

    def remainder(total: str) -> str:
        return f"((({total}) % {base}) + {base}) % {base}"

    def carry(total: str) -> str:
        return f"((({total}) - {remainder(total)}) // {base})"

    middle = f"mid + {carry('lo')}"
    return ", ".join(f"({sql})::{amounts.DECIMAL} AS {limb}" for limb, sql in (
        ("hi", f"hi + {carry(middle)}"), ("mid", remainder(middle)), ("lo", remainder("lo"))))
