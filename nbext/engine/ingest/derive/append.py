"""Append new rows to a generation: what they change is derived from what is stored, and written to its delta.

A balance goes on from the stored balance, a token id from its stored owner, a wallet's activity from its stored row.
That holds where a contract's new rows are all later than its stored ones. Whatever reaches back, such as rows of the
past, a snapshot, an id whose first sender had it before the data begins, or a contract that turns out to be of another
standard, raises `Rebuild`: then everything is derived again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine.duckdb.files import texts_joined
from nbext.engine.ingest.derive import contracts, duplicates, holdings, rows, tables
from nbext.engine.ingest.derive.facts import ADDRESS
from nbext.engine.ingest.derive.holdings import NOBODY
from nbext.engine.ingest.derive.rows import map_contracts, map_wallets
from nbext.engine.ingest.stage import Stage
from nbext.engine.layers import STALE, overlay
from nbext.engine.schema import FOREVER, TABLES
from nbext.engine.storage import Generation

# Fewer stored transfers than these are derived again as fast as a delta is written, and then need none.
LEAST = 200_000
# More rows than this share of the stored ones are not worth a delta.
SHARE = 0.25
# A delta of more is folded into a new base once it is served: until then queries of large contracts take twice as long.
FOLDED = 0.03
# Addresses of the base that are looked through at once.
_BATCH = 1_000_000
_WIDTH = "S42"
_EVERYBODY = range(2**31 - 1)
_LARGE = 2**62


class Rebuild(Exception):
    """The new rows change what is stored of the past; the text says which of them do, for the report."""


def is_possible(previous: Generation | None) -> bool:
    """Say whether a generation is one to append to: of some size."""
    return previous is not None and previous.manifest["tables"]["transfers"] >= LEAST


def create_delta(stage: Stage) -> None:
    """Create the empty tables of a delta, where it is the first one on its base."""
    assert stage.previous is not None
    if stage.previous.delta:
        return
    tables.create_tables(stage)
    stage.run("CREATE SCHEMA out.stale")
    for table, columns in STALE.items():
        stage.run(
            f"CREATE TABLE out.stale.{table} ({', '.join(f'{c} {t}' for c, t in columns.items())})"
        )
    stage.run("CREATE SCHEMA out.ingest")
    stage.run("CREATE TABLE out.ingest.places (wallet INTEGER, address VARCHAR, place BIGINT)")
    duplicates.create_keys(stage)
    for table in ("repeats", "blocks"):
        stage.run(f"CREATE TABLE out.ingest.{table} AS FROM prev.ingest.{table} LIMIT 0")


def number_addresses(stage: Stage) -> None:
    """Give new contracts and wallets the next numbers; create what `wallets.rank_addresses` creates.

    ``fresh_wallets`` and ``fresh_contracts`` are the new ones.
    """
    valid = ADDRESS.format("address")
    stage.run(f"""
        CREATE TABLE fresh_contracts AS SELECT chain_id, address FROM (
            SELECT chain_id, lower(address) AS address FROM spelled_contracts WHERE {valid}
            UNION SELECT chain_id, address FROM known)
        ANTI JOIN prev.main.contracts USING (chain_id, address) ORDER BY 1, 2""")
    stage.run(
        "CREATE TABLE contract_ranks AS SELECT chain_id, address FROM prev.main.contracts ORDER BY contract"
    )
    stage.run("INSERT INTO contract_ranks SELECT * FROM fresh_contracts ORDER BY 1, 2")
    # Addresses that are sought: those of the rows, and those of new contracts, which may be wallets already.
    stage.run(f"""
        CREATE TABLE sought AS SELECT address, bool_or(met) AS met FROM (
            SELECT lower(address) AS address, true AS met FROM spelled WHERE {valid}
            UNION ALL SELECT address, false FROM fresh_contracts) GROUP BY 1 ORDER BY 1""")
    stage.insert("places", _places(stage), create=True)
    stage.run(
        "UPDATE places SET wallet = w.wallet FROM out.main.wallets w WHERE w.address = places.address"
    )
    stage.run("""
        CREATE TABLE fresh_wallets AS SELECT
            ((SELECT count(*) FROM prev.main.wallets) + row_number() OVER (ORDER BY address) - 1)::INTEGER AS wallet,
            address, place FROM places WHERE wallet IS NULL AND met ORDER BY address""")
    stage.run(
        "CREATE VIEW wallets AS SELECT wallet AS rowid, address FROM prev.main.wallets "
        "UNION ALL SELECT wallet, address FROM fresh_wallets"
    )
    stage.run(
        "CREATE TABLE numbered AS SELECT wallet AS rowid, address FROM places WHERE wallet IS NOT NULL AND met "
        "UNION ALL SELECT wallet, address FROM fresh_wallets"
    )
    map_wallets(stage, "numbered")
    map_contracts(stage)
    stage.drop("spelled", "spelled_contracts", "sought", "numbered")


def _places(stage: Stage) -> pa.Table:
    """Return the sought addresses with their wallets in the base, null for those that it does not have.

    ``place`` is how many addresses of the base come before each.
    """
    # The base is in the order of its addresses, and a wallet's number is its place there: arrays are searched in half
    # of the time that a join of texts takes.
    sought = stage.arrow("SELECT address, met FROM sought ORDER BY 1")
    wanted = np.frombuffer(b"".join(map(texts_joined, sought["address"].chunks)), _WIDTH)
    wallets, places = np.full(len(wanted), -1, np.int64), np.zeros(len(wanted), np.int64)
    for start in range(0, stage.value(f"SELECT count(*) FROM {stage.base}.main.wallets"), _BATCH):
        # Not as a stream, which one thread would read.
        stored = stage.arrow(
            f"SELECT address FROM {stage.base}.main.wallets "
            f"WHERE wallet BETWEEN {start} AND {start + _BATCH - 1}"
        )
        texts = np.frombuffer(b"".join(map(texts_joined, stored["address"].chunks)), _WIDTH)
        # Only the few that lie within the batch are sought in it: what comes after has all of it before.
        low, high = (
            np.searchsorted(wanted, texts[0]),
            np.searchsorted(wanted, texts[-1], side="right"),
        )
        place = np.searchsorted(texts, wanted[low:high])
        found = texts[place] == wanted[low:high]
        wallets[low:high][found] = start + place[found]
        places[low:high] += place
        places[high:] += len(texts)
    sought = sought.append_column("wallet", pa.array(wallets, pa.int32(), mask=wallets < 0))
    return sought.append_column("place", pa.array(places))


def check_bad_rows(stage: Stage) -> None:
    """Refuse to go on where only bad rows name an address: nothing of them may be left."""
    unused = stage.value("""
        SELECT (SELECT count(*) FROM fresh_wallets ANTI JOIN (SELECT sender AS wallet FROM incoming UNION ALL
                    SELECT recipient FROM incoming) USING (wallet))
            + (SELECT count(*) FROM fresh_contracts f JOIN contract_ranks r USING (chain_id, address)
               ANTI JOIN known USING (chain_id, address)
               WHERE r.rowid NOT IN (SELECT contract FROM incoming))""")
    if unused:
        raise Rebuild("bad rows name addresses that no other row does")


def merge_rows(stage: Stage, zero: int) -> Mapping[str, int]:
    """Write what the new rows change into the delta; return how many rows each table has by now."""
    stored = stage.value("SELECT count(*) FROM prev.main.transfers")
    if stage.value("SELECT count(*) FROM incoming") > SHARE * stored:
        raise Rebuild("there are many new rows")
    stage.run(
        "CREATE TABLE contract_chain AS SELECT rowid::INTEGER AS contract, chain_id FROM contract_ranks"
    )
    _blocks(stage)
    _classify(stage)
    _check_order(stage)
    flows = _flows(stage, zero)
    counts = {"balances": _holdings(stage, flows), "activity": _activity(stage)}
    _grow(stage)
    overlay(stage.run, "now", stage.base, "out")
    counts["contracts"] = _contracts(stage, zero)
    return {table: _count(stage, table, counts) for table in TABLES}


# What each table is sorted by: pairs of numbers as one, by which DuckDB sorts in half of the time.
_SORTED = {
    "transfers": "contract, {moment}, {sides}",
    "history": "{held}, from_block",
    "balances": "{held}",
    "nft_changes": "contract, id_hi, id_mid, id_lo, block, wallet",
    "activity": "chain_id, wallet",
    "snapshot_wallets": "chain_id, block, wallet",
    "contracts": "contract",
}


def fold_delta(stage: Stage, advance: Callable[[float], None]) -> None:
    """Fill the tables of a new base with the rows of the one before and of its delta, which only get new numbers."""
    # What the report counts of new rows: there are none.
    stage.run("CREATE TABLE standards (contract INTEGER, standard VARCHAR, declared BOOLEAN)")
    moved = {
        "contract": "contract_moves",
        **dict.fromkeys(("wallet", "sender", "recipient"), "wallet_moves"),
    }
    origin = {"transfers": ["source", "row", "given"]}
    keys = {
        "moment": rows.log_order(stage),
        "sides": rows.pair("sender", "recipient"),
        "held": rows.pair("contract", "wallet"),
    }
    for done, (table, order) in enumerate(_SORTED.items()):
        columns = [*TABLES[table], *origin.get(table, [])]
        joins = [
            f"JOIN {moved[column]} AS {column}_now ON {column}_now.old = t.{column}"
            for column in columns
            if column in moved
        ]
        named = ", ".join(
            f"{column}_now.now AS {column}" if column in moved else f"t.{column}"
            for column in columns
        )
        stage.run(
            f"INSERT INTO out.{table} SELECT * FROM (SELECT {named} FROM prev.main.{table} t {' '.join(joins)}) "
            f"ORDER BY {order.format(**keys)}"
        )
        advance((done + 1) / len(_SORTED))


def _count(stage: Stage, table: str, counts: Mapping[str, int]) -> int:
    assert stage.previous is not None
    if table in counts:
        return int(stage.previous.manifest["tables"][table]) + counts[table]
    return int(
        stage.value(
            f"SELECT (SELECT count(*) FROM {stage.base}.main.{table}) + count(*) FROM out.main.{table}"
        )
    )


def _blocks(stage: Stage) -> None:
    """Create ``fresh_blocks`` and ``extents``, and note chains that have a block without a time."""
    assert stage.previous is not None
    stage.run("""
        CREATE TABLE met_blocks AS
        SELECT chain_id, block, first(seconds ORDER BY source, seconds) FILTER (seconds IS NOT NULL) AS timestamp
        FROM times GROUP BY 1, 2""")
    if stage.value("SELECT count(*) FROM prev.ingest.openings WHERE seconds IS NOT NULL"):
        raise Rebuild("a stored snapshot is placed by its time")
    stage.run(
        "CREATE TABLE fresh_blocks AS FROM met_blocks ANTI JOIN prev.main.blocks USING (chain_id, block)"
    )
    if stage.value(
        "SELECT count(*) FROM met_blocks m JOIN prev.main.blocks p USING (chain_id, block) "
        "WHERE p.timestamp IS NULL AND m.timestamp IS NOT NULL"
    ):
        raise Rebuild("stored blocks get their times")
    firsts = {chain.chain_id: chain.first_block for chain in stage.previous.chains}
    for chain, first in stage.rows("SELECT chain_id, min(block) FROM fresh_blocks GROUP BY 1"):
        if first < firsts.get(chain, 0):
            raise Rebuild("blocks before the first one are new")
    tables.save_extents(stage, "(FROM prev.main.blocks UNION ALL FROM fresh_blocks)")
    stage.run(
        "INSERT INTO out.stale.untimed SELECT chain_id FROM extents ANTI JOIN out.stale.untimed USING (chain_id) "
        "WHERE NOT timed"
    )


def _classify(stage: Stage) -> None:
    """Create ``standards`` of all contracts; of the new rows' contracts without metadata by all of their rows."""
    stage.run(f"""
        CREATE VIEW arrived AS SELECT {tables.ROW}, coalesce(count, 1) AS count FROM incoming
        UNION ALL SELECT {tables.ROW}, coalesce(count, 1) FROM prev.main.transfers
        SEMI JOIN (SELECT contract FROM incoming EXCEPT SELECT contract FROM (
            SELECT c.rowid::INTEGER AS contract FROM contract_ranks c JOIN known k USING (chain_id, address)
            WHERE k.standard IS NOT NULL)) USING (contract)""")
    stage.run(
        "CREATE TABLE opened (contract INTEGER, block BIGINT, wallet INTEGER, has_id BOOLEAN)"
    )
    contracts.classify(stage)
    stage.run(
        "INSERT INTO standards SELECT contract, standard, false FROM prev.main.contracts "
        "ANTI JOIN standards USING (contract) WHERE transfers IS NOT NULL"
    )
    if stage.value(
        "SELECT count(*) FROM standards s JOIN prev.main.contracts p USING (contract) "
        "WHERE p.transfers IS NOT NULL AND p.standard <> s.standard"
    ):
        raise Rebuild("a contract's standard is another than before")


def _check_order(stage: Stage) -> None:
    """Create ``profile``, of the new rows' contracts."""
    stage.run("""
        CREATE TABLE profile AS
        SELECT contract, count(*) AS n, min(block) AS since, any_value(standard) <> 'ERC20' AS nft,
            any_value(standard) = 'ERC1155' AS multi, any_value(first_block) AS first_block
        FROM incoming JOIN standards USING (contract) LEFT JOIN extents USING (chain_id) GROUP BY contract""")
    late = stage.value("""
        SELECT count(*) FROM profile JOIN (
            SELECT contract, max(block) AS last FROM prev.main.transfers GROUP BY 1 UNION ALL
            SELECT r.rowid::INTEGER, max(o.block) FROM prev.ingest.openings o JOIN contract_ranks r
                ON r.chain_id = o.chain_id AND r.address = o.contract GROUP BY 1) USING (contract)
        WHERE since <= last""")
    if late:
        raise Rebuild("rows are older than stored ones of the same contract")


def _flows(stage: Stage, zero: int) -> pa.Table:
    """Return what moved from whom to whom, and save the changes of NFTs."""
    ids = "contract, hi, mid, lo"
    met = f"SELECT {ids}, sender, recipient FROM incoming JOIN profile USING (contract) WHERE"
    # Of an ERC721's id whoever owns it, of an ERC1155's those who took part: what they had goes on from there.
    stage.run(f"""
        CREATE TABLE owned AS
        SELECT {ids}, wallet, sum(change) AS count FROM (
            SELECT contract, id_hi AS hi, id_mid AS mid, id_lo AS lo, wallet, change FROM prev.main.nft_changes)
        SEMI JOIN (SELECT DISTINCT {ids} FROM ({met} nft)) USING ({ids})
        GROUP BY ALL HAVING sum(change) > 0""")
    if stage.value(f"SELECT max(count) > {_LARGE} FROM owned"):
        raise Rebuild("a wallet owns more of a token id than a transfer can move")
    rows = (
        f"(SELECT * FROM (SELECT {tables.ROW}, coalesce(count, 1) AS count FROM incoming UNION ALL "
        f"SELECT contract, -1, {tables.OPENING}, {NOBODY}, wallet, hi, mid, lo, count::BIGINT FROM owned) "
        "JOIN profile USING (contract))"
    )
    tables.derive_changes(stage, rows, zero)
    if stage.value("SELECT count(*) FROM held_before"):
        raise Rebuild("tokens are sent that their sender had before the data begins")
    tables.save_changes(stage)
    return stage.arrow(
        f"SELECT * FROM ({tables.flowing(rows, wide=True, wallets=_EVERYBODY)}) WHERE block >= 0"
    )


def _replace(stage: Stage, table: str, which: str, key: str, came: str) -> None:
    """Write a table of the delta again: without rows that have a key, with those that came, sorted by it."""
    # A table from which single rows were deleted is read ten times as slowly.
    stage.run(
        f"CREATE TABLE kept AS SELECT t.* FROM out.main.{table} t ANTI JOIN {which} USING ({key})"
    )
    stage.run(f"DELETE FROM out.main.{table}")
    stage.run(
        f"INSERT INTO out.main.{table} SELECT * FROM (FROM kept UNION ALL ({came})) ORDER BY {key}"
    )
    stage.drop("kept")


def _holdings(stage: Stage, flows: pa.Table) -> int:
    """Save the balances and their history from stored balances on; return how many balances came."""
    key = "contract, wallet"
    stage.connection.register("flowing", flows)
    stage.run(
        "CREATE TABLE pairs AS SELECT DISTINCT contract, unnest([sender, recipient]) AS wallet FROM flowing"
    )
    stage.connection.unregister("flowing")
    stage.run(f"DELETE FROM pairs WHERE wallet = {NOBODY}")
    stage.run(f"""
        CREATE TABLE held AS
        SELECT *, true AS base FROM {stage.base}.main.balances SEMI JOIN pairs USING ({key})
        ANTI JOIN out.stale.holdings USING ({key})
        UNION ALL SELECT *, false FROM out.main.balances SEMI JOIN pairs USING ({key})""")
    opening = stage.arrow(
        f"SELECT contract, (-1)::BIGINT AS block, {tables.OPENING}::BIGINT AS log_index, "
        f"{NOBODY}::INTEGER AS sender, wallet AS recipient, hi, mid, lo FROM held"
    )
    found, stands = holdings.history(
        pa.concat_tables([opening, flows.cast(opening.schema)]), _EVERYBODY
    )
    stage.insert("standing", found.append_column("stands", pa.array(stands)), create=True)
    stage.run(
        f"CREATE TABLE ended AS SELECT {key}, min(from_block) FILTER (from_block >= 0) AS until "
        f"FROM standing GROUP BY {key}"
    )
    stage.run(
        f"UPDATE out.main.history h SET to_block = until FROM ended e "
        f"WHERE e.contract = h.contract AND e.wallet = h.wallet AND h.to_block = {FOREVER}"
    )
    # Also pairs that the base may not have: where one has no balance, only a scan of all its history could tell.
    stage.run(f"""
        INSERT INTO out.stale.holdings SELECT contract, wallet, until, coalesce(base, false)
        FROM ended LEFT JOIN held USING ({key}) ANTI JOIN out.stale.holdings USING ({key})
        WHERE contract < (SELECT count(*) FROM {stage.base}.main.contracts)
            AND wallet < (SELECT count(*) FROM {stage.base}.main.wallets)""")
    stage.run(
        f"INSERT INTO out.main.history SELECT {', '.join(TABLES['history'])} FROM standing WHERE from_block >= 0"
    )
    _replace(
        stage,
        "balances",
        "pairs",
        key,
        f"SELECT {', '.join(TABLES['balances'])} FROM standing WHERE stands",
    )
    return int(
        stage.value("SELECT count(*) FILTER (stands) - (SELECT count(*) FROM held) FROM standing")
    )


def _activity(stage: Stage) -> int:
    """Save the activity of the new rows' wallets; return how many of them are new."""
    key = "chain_id, wallet"
    stage.run(f"""
        CREATE TABLE sides AS SELECT {key}, block, count(*) AS n, timestamp // {tables.DAY} AS day FROM (
            SELECT chain_id, sender AS wallet, block FROM incoming
            UNION ALL SELECT chain_id, recipient, block FROM incoming WHERE sender <> recipient)
        JOIN (FROM prev.main.blocks SEMI JOIN met_blocks USING (chain_id, block) UNION ALL FROM fresh_blocks)
            USING (chain_id, block) GROUP BY ALL""")
    stage.run(f"""
        CREATE TABLE were AS SELECT *, true AS base FROM {stage.base}.main.activity SEMI JOIN sides USING ({key})
            ANTI JOIN out.stale.activity USING ({key})
        UNION ALL SELECT *, false FROM out.main.activity SEMI JOIN sides USING ({key})""")
    _new_days(stage)
    stage.run(f"INSERT INTO out.stale.activity SELECT {key} FROM were WHERE base")
    _replace(
        stage,
        "activity",
        "were",
        key,
        f"""
        SELECT {key}, least(first, seen_block), least(first, first_block),
            greatest(last, last_block), (n + coalesce(transfers, 0))::BIGINT,
            CASE WHEN timed THEN coalesce(new_days, 0) + coalesce(active_days, 0) END
        FROM (SELECT {key}, min(block) AS first, max(block) AS last, sum(n) AS n FROM sides GROUP BY ALL)
        JOIN (SELECT chain_id, timed FROM extents) USING (chain_id)
        LEFT JOIN were USING ({key})
        LEFT JOIN (SELECT {key}, count(*) AS new_days FROM days GROUP BY ALL) USING ({key})""",
    )
    return int(
        stage.value(f"SELECT count(DISTINCT ({key})) - (SELECT count(*) FROM were) FROM sides")
    )


def _new_days(stage: Stage) -> None:
    """Create ``days``: on which days the new rows' wallets were active that had not been on these."""
    key = "chain_id, wallet"
    day_of = (
        "LEFT JOIN (SELECT chain_id, block AS {0}_block, timestamp // {1} AS {0} FROM prev.main.blocks) "
        "USING (chain_id, {0}_block)"
    )
    stage.run(f"""
        CREATE TABLE days AS SELECT {key}, day, first, last FROM sides
        LEFT JOIN (SELECT {key}, first, last FROM were {day_of.format("first", tables.DAY)}
                   {day_of.format("last", tables.DAY)}) USING ({key})
        WHERE day IS NOT NULL GROUP BY ALL""")
    # Whoever a snapshot names was seen then, without a transfer: that day does not count.
    if not stage.value("SELECT count(*) FROM prev.ingest.openings"):
        stage.run("DELETE FROM days WHERE day IN (first, last)")
    # Of a day between a wallet's first and its last one only its transfers tell, and to find them all are read. New
    # rows are seldom of such a day: those of other contracts came before them then.
    stage.run(f"""
        CREATE TABLE doubtful AS SELECT DISTINCT b.chain_id, b.block, day FROM prev.main.blocks b
        JOIN (SELECT DISTINCT chain_id, day FROM days WHERE day BETWEEN first AND last) d
            ON d.chain_id = b.chain_id AND d.day = b.timestamp // {tables.DAY}""")
    if stage.value("SELECT count(*) FROM doubtful"):
        stage.run("""
            DELETE FROM days d USING (
                SELECT chain_id, day, unnest([sender, recipient]) AS wallet FROM prev.main.transfers
                JOIN doubtful USING (block) JOIN contract_chain USING (contract, chain_id)) s
            WHERE s.chain_id = d.chain_id AND s.wallet = d.wallet AND s.day = d.day""")


def _grow(stage: Stage) -> None:
    """Save the transfers, their keys, new blocks and new wallets."""
    stage.run(f"""
        INSERT INTO out.main.transfers
        SELECT {tables.ROW}, CASE standard WHEN 'ERC721' THEN 1 WHEN 'ERC1155' THEN coalesce(count, 1) END,
            file, row, count
        FROM incoming JOIN standards USING (contract)
        ORDER BY contract, block, log_index, {rows.pair("sender", "recipient")}""")
    stage.run(f"INSERT INTO out.ingest.keys SELECT {duplicates.KEY}, file, row FROM incoming")
    stage.run("INSERT INTO out.ingest.repeats FROM repeats")
    stage.run("INSERT INTO out.ingest.blocks SELECT source, chain_id, block, seconds FROM times")
    stage.run("INSERT INTO out.main.blocks FROM fresh_blocks ORDER BY 1, 2")
    stage.run(f"""
        INSERT INTO out.main.wallets SELECT wallet, address, CASE WHEN address IN (SELECT address FROM contract_ranks)
            THEN true WHEN address = '{ZERO_ADDRESS}' THEN false END FROM fresh_wallets ORDER BY 1""")
    stage.run("INSERT INTO out.ingest.places SELECT wallet, address, place FROM fresh_wallets")
    # Wallets that were known before what is at their address was known as a contract.
    stage.run(
        "INSERT INTO out.stale.wallets SELECT DISTINCT wallet FROM places SEMI JOIN fresh_contracts "
        "USING (address) WHERE wallet IS NOT NULL"
    )
    stage.run(
        "UPDATE out.main.wallets SET is_contract = true WHERE wallet IN (FROM out.stale.wallets)"
    )


def _contracts(stage: Stage, zero: int) -> int:
    """Save the contracts with what is counted of each; return how many are new."""
    positive = f"hi >= 0 AND wallet <> {zero}"
    stage.run(f"""
        CREATE TABLE changes AS SELECT contract, any_value(n) AS n, coalesce(sum(holders), 0)::BIGINT AS holders
        FROM profile LEFT JOIN (
            SELECT contract, count(*) AS holders FROM standing WHERE stands AND {positive} GROUP BY 1 UNION ALL
            SELECT contract, -count(*) FROM held WHERE {positive} GROUP BY 1) USING (contract) GROUP BY contract""")
    # A supply is what was minted, where the data reaches back to the deployment.
    stage.run("""
        CREATE TABLE resupplied AS SELECT r.rowid::INTEGER AS contract, k.deployed_block >= e.first_block AS known
        FROM contract_ranks r JOIN known k USING (chain_id, address) JOIN extents e USING (chain_id)
        LEFT JOIN prev.main.contracts p ON p.contract = r.rowid
        WHERE r.rowid IN (SELECT contract FROM profile) OR p.deployed_block IS DISTINCT FROM k.deployed_block""")
    contracts.sum_supplies(
        stage,
        zero,
        "(FROM now.main.balances SEMI JOIN (FROM resupplied WHERE known) USING (contract))",
    )
    stage.run("""
        CREATE TABLE listed AS
        SELECT r.rowid::INTEGER AS contract, r.chain_id, r.address, coalesce(s.standard, k.standard) AS standard,
            k.name, k.symbol, k.decimals, k.logo, k.verified, k.spam, k.deployer, k.deployed_block,
            coalesce(k.total_supply, CASE WHEN u.contract IS NULL THEN p.total_supply ELSE y.total_supply END),
            CASE WHEN c.contract IS NULL THEN p.holders ELSE coalesce(p.holders, 0) + c.holders END,
            CASE WHEN c.contract IS NULL THEN p.transfers ELSE coalesce(p.transfers, 0) + c.n END
        FROM contract_ranks r LEFT JOIN known k USING (chain_id, address) LEFT JOIN standards s ON s.contract = r.rowid
        LEFT JOIN prev.main.contracts p ON p.contract = r.rowid LEFT JOIN changes c ON c.contract = r.rowid
        LEFT JOIN resupplied u ON u.contract = r.rowid LEFT JOIN supplies y ON y.contract = r.rowid
        ORDER BY 1""")
    stage.run("DELETE FROM out.main.contracts")
    stage.run("INSERT INTO out.main.contracts FROM listed")
    return int(stage.value("SELECT count(*) FROM fresh_contracts"))
