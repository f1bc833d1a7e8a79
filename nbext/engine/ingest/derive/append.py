"""Append new rows to a generation: what they change is derived from what is stored, and written to its delta.

A balance goes on from the stored balance, a token id from its stored owner, a wallet's activity from its stored row.
That holds where a contract's new rows are all later than its stored ones. What reaches back is derived again alone, and
is whole in the delta: the holding of a wallet that sends an ERC721's id which it had before the data begins; or a whole
contract, where rows are older than stored ones, where a snapshot of it is new, or where it turns out to be of another
standard. Whatever reaches further, such as times of stored blocks, raises `Rebuild`: then everything is derived again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from nbext.core.addresses import ZERO_ADDRESS
from nbext.engine import layers
from nbext.engine.duckdb.files import texts_joined
from nbext.engine.ingest.derive import contracts, duplicates, holdings, rows, tables
from nbext.engine.ingest.derive.facts import ADDRESS
from nbext.engine.ingest.derive.holdings import NOBODY
from nbext.engine.ingest.derive.rows import map_contracts, map_wallets
from nbext.engine.ingest.stage import KEY, Stage
from nbext.engine.layers import STALE, WHOLE, overlay
from nbext.engine.schema import FOREVER, TABLES

# Fewer stored transfers than these are derived again as fast as a delta is written, and then need none.
LEAST = 200_000
# More rows than this share of the stored ones are not worth a delta.
SHARE = 0.25
# A delta of more is folded into a new base once it is served: until then queries of large contracts take twice as long.
FOLDED = 0.03
# Addresses of the base that are looked through at once.
_BATCH = 1_000_000
_WIDTH = "S42"
_PAIR, _BLOCK = "contract, wallet", "contract, block"


class Rebuild(Exception):
    """The new rows change what is stored of the past; the text says which of them do, for the report."""


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
    for table in ("repeats", "blocks", "openings"):
        stage.run(f"CREATE TABLE out.ingest.{table} AS FROM prev.ingest.{table} LIMIT 0")


def number_addresses(stage: Stage) -> None:
    """Give new contracts and wallets the next numbers; create what `wallets.rank_addresses` creates.

    ``fresh_wallets`` and ``fresh_contracts`` are the new ones.
    """
    valid = ADDRESS.format("address")
    stage.run(f"""
        CREATE TABLE fresh_contracts AS SELECT chain_id, address FROM (
            SELECT chain_id, lower(address) AS address FROM spelled_contracts WHERE {valid}
            UNION SELECT chain_id, contract FROM openings UNION SELECT chain_id, address FROM known)
        ANTI JOIN prev.main.contracts USING (chain_id, address) ORDER BY 1, 2""")
    stage.run(
        "CREATE TABLE contract_ranks AS SELECT chain_id, address FROM prev.main.contracts ORDER BY contract"
    )
    stage.run("INSERT INTO contract_ranks SELECT * FROM fresh_contracts ORDER BY 1, 2")
    # Addresses that are sought: those of the rows, and those of new contracts, which may be wallets already.
    stage.run(f"""
        CREATE TABLE sought AS SELECT address, bool_or(met) AS met FROM (
            SELECT lower(address) AS address, true AS met FROM spelled WHERE {valid}
            UNION ALL SELECT address, true FROM openings WHERE source >= {stage.first}
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
                    SELECT recipient FROM incoming) USING (wallet) ANTI JOIN openings USING (address))
            + (SELECT count(*) FROM fresh_contracts f JOIN contract_ranks r USING (chain_id, address)
               ANTI JOIN known USING (chain_id, address)
               WHERE r.rowid NOT IN (SELECT contract FROM incoming)
                   AND address NOT IN (SELECT contract FROM openings))""")
    if unused:
        raise Rebuild("bad rows name addresses that no other row does")


def merge_rows(stage: Stage, zero: int, advance: Callable[[float], None]) -> Mapping[str, int]:
    """Write what the new rows change into the delta; return how many rows each table has by now."""
    stored = stage.value("SELECT count(*) FROM prev.main.transfers")
    if stage.value("SELECT count(*) FROM incoming") > SHARE * stored:
        raise Rebuild("there are many new rows")
    _blocks(stage)
    rows.open_snapshots(stage)
    _classify(stage)
    _find_changed(stage, stored)
    flows = _flows(stage, zero)
    _grow(stage)
    _holdings(stage, flows)
    _derive_again(stage, zero, advance)
    overlay(stage.run, "now", stage.base, "out")
    _activity(stage)
    _contracts(stage, zero)
    return {table: _count(stage, table) for table in TABLES}


# What each table is sorted by: pairs of numbers as one, by which DuckDB sorts in half of the time.
_SORTED = {
    "transfers": "contract, {moment}, {sides}",
    "history": "{held}, from_block",
    "balances": "{held}",
    "nft_changes": "contract, id_hi, id_mid, id_lo, block, wallet",
    "activity": "chain_id, wallet",
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


def _count(stage: Stage, table: str) -> int:
    """Return how many rows a table has by now: the delta's, and those of the base that it does not override."""
    rows = f"SELECT count(*) FROM {stage.base}.main.{table}"
    hidden = [
        f"({rows} SEMI JOIN {stale} USING ({key}))"
        for stale, key in layers.hidden(table, "out")
        if stage.value(f"SELECT count(*) FROM {stale}")
    ]
    # Each of these is one row of the base: they are counted without a look at it.
    single = {
        "balances": "out.stale.holdings WHERE held",
        "activity": "out.stale.activity",
        "contracts": f"{stage.base}.main.contracts",
    }
    if table in single:
        hidden.append(f"(SELECT count(*) FROM {single[table]})")
    both = [f"({rows})", f"(SELECT count(*) FROM out.main.{table})"]
    return int(stage.value(f"SELECT {' - '.join([' + '.join(both), *hidden])}"))


def _blocks(stage: Stage) -> None:
    """Create ``fresh_blocks`` and ``extents``, and note chains that have a block without a time."""
    assert stage.previous is not None
    stage.run("""
        CREATE TABLE met_blocks AS
        SELECT chain_id, block, first(seconds ORDER BY source, seconds) FILTER (seconds IS NOT NULL) AS timestamp,
            max(hash) AS hash
        FROM (FROM times UNION ALL SELECT DISTINCT NULL, chain_id, block, NULL, NULL FROM placed) GROUP BY 1, 2""")
    if stage.value("SELECT count(*) FROM openings WHERE seconds IS NOT NULL"):
        raise Rebuild("a snapshot is placed by its time")
    stage.run(
        "CREATE TABLE fresh_blocks AS FROM met_blocks ANTI JOIN prev.main.blocks USING (chain_id, block)"
    )
    if stage.value(
        "SELECT count(*) FROM met_blocks m JOIN prev.main.blocks p USING (chain_id, block) "
        "WHERE p.timestamp IS NULL AND m.timestamp IS NOT NULL OR p.hash IS NULL AND m.hash IS NOT NULL"
    ):
        raise Rebuild("stored blocks get their times or hashes")
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
    duplicates.join_previous(
        stage,
        """SEMI JOIN (SELECT contract FROM incoming EXCEPT SELECT contract FROM (
            SELECT c.rowid::INTEGER AS contract FROM contract_ranks c JOIN known k USING (chain_id, address)
            WHERE k.standard IS NOT NULL)) USING (contract)""",
    )
    contracts.classify(stage)
    stage.run(
        "INSERT INTO standards SELECT contract, standard, false FROM prev.main.contracts "
        "ANTI JOIN standards USING (contract) WHERE transfers IS NOT NULL"
    )


def _find_changed(stage: Stage, stored: int) -> None:
    """Create ``changed``: the contracts whose past is another now, which are derived again from all their rows.

    And ``reopened``: the block of a contract that its new rows go on in.
    """
    place = "{'block': block, 'log_index': log_index}"
    stage.run(f"""
        CREATE TABLE reached AS
        SELECT contract, since, last FROM (SELECT contract, min({place}) AS since FROM incoming GROUP BY 1)
        JOIN (SELECT contract, max({place}) AS last FROM prev.main.transfers
              WHERE block >= (SELECT min(block) FROM incoming) GROUP BY 1) USING (contract)""")
    # A snapshot changes what is stored up to its block; rows up to there change who sent what, and to whom.
    stage.run(f"""
        CREATE TABLE changed AS
        SELECT contract FROM standards s JOIN prev.main.contracts p USING (contract)
        WHERE p.transfers IS NOT NULL AND p.standard <> s.standard
        UNION SELECT contract FROM reached WHERE since <= last
        UNION SELECT r.rowid::INTEGER FROM newest n JOIN contract_ranks r
            ON r.chain_id = n.chain_id AND r.address = n.contract
        LEFT JOIN (SELECT contract, min(block) AS since FROM incoming GROUP BY 1) i ON i.contract = r.rowid
        WHERE n.source >= {stage.first} OR since <= n.block""")
    stage.run("""
        CREATE TABLE reopened AS SELECT contract, since.block AS block FROM reached
        ANTI JOIN changed USING (contract) WHERE since.block = last.block""")
    again = "SELECT count(*) FROM prev.main.transfers SEMI JOIN changed USING (contract)"
    if stage.value(again) > SHARE * stored:
        raise Rebuild("most of what is stored changes")


def _flows(stage: Stage, zero: int) -> pa.Table:
    """Return what moved from whom to whom, and save the changes of NFTs; of contracts that go on from what is stored.

    Creates ``earlier``: the holdings of NFTs that are derived again, from all changes of theirs that there are. Who
    sends an id first held one more from the beginning, and what is stored of a block may not be its end.
    """
    ids = "contract, hi, mid, lo"
    tables.create_profile(
        stage,
        "SEMI JOIN (SELECT contract FROM incoming EXCEPT FROM changed) USING (contract)",
        "incoming",
    )
    # Of an ERC721's id whoever owns it, of an ERC1155's all owners: what they had goes on from there.
    stage.run(f"""
        CREATE TABLE owned AS
        SELECT {ids}, wallet, sum(change) AS count FROM (
            SELECT contract, id_hi AS hi, id_mid AS mid, id_lo AS lo, wallet, change FROM prev.main.nft_changes)
        SEMI JOIN (SELECT DISTINCT {ids} FROM incoming JOIN profile USING (contract) WHERE nft) USING ({ids})
        GROUP BY ALL HAVING sum(change) > 0""")
    rows = (
        f"(SELECT * FROM (SELECT {tables.ROW}, coalesce(count, 1) AS count FROM incoming UNION ALL "
        f"SELECT contract, -1, {tables.OPENING}, {NOBODY}, wallet, hi, mid, lo, count FROM owned) "
        "JOIN profile USING (contract))"
    )
    tables.derive_changes(stage, rows, zero)
    # Of an ERC1155's id a wallet may have had some before already: of both together there is one row.
    stage.run(
        "INSERT INTO reopened SELECT DISTINCT contract, block FROM held_before "
        "JOIN profile USING (contract) WHERE multi"
    )
    stage.run(
        f"CREATE TABLE again AS FROM prev.main.nft_changes SEMI JOIN reopened USING ({_BLOCK})"
    )
    stage.run(f"""
        CREATE TABLE earlier AS SELECT {_PAIR} FROM held_before
        UNION SELECT {_PAIR} FROM again SEMI JOIN token_changes USING ({_PAIR}, block)""")
    # What is hidden with its contract is not hidden twice: hidden rows are counted.
    stage.run(
        f"INSERT INTO out.stale.blocks FROM reopened ANTI JOIN out.stale.blocks USING ({_BLOCK}) "
        "ANTI JOIN out.stale.contracts USING (contract)"
    )
    _replace(
        stage,
        "nft_changes",
        "reopened",
        _BLOCK,
        f"""
        SELECT {ids}, wallet, block, sum(change) FROM (FROM token_changes WHERE block >= 0 UNION ALL FROM again)
        GROUP BY ALL HAVING sum(change) <> 0""",
    )
    stage.run(
        f"INSERT INTO token_changes FROM prev.main.nft_changes SEMI JOIN earlier USING ({_PAIR})"
    )
    return stage.arrow(
        f"SELECT * FROM ({tables.flowing(rows, wide=True, wallets=tables.EVERYBODY)}) WHERE block >= 0"
    )


def _replace(stage: Stage, table: str, which: str, key: str, came: str = "") -> None:
    """Write a table of the delta again: without rows that have a key, with those that came, sorted by it."""
    # A table from which single rows were deleted is read ten times as slowly.
    stage.run(
        f"CREATE TABLE kept AS SELECT t.* FROM out.main.{table} t ANTI JOIN {which} USING ({key})"
    )
    stage.run(f"DELETE FROM out.main.{table}")
    more = f"UNION ALL ({came})" if came else ""
    stage.run(f"INSERT INTO out.main.{table} SELECT * FROM (FROM kept {more}) ORDER BY {key}")
    stage.drop("kept")


def _holdings(stage: Stage, flows: pa.Table) -> None:
    """Save the balances and their history from stored balances on."""
    stage.insert(
        "pairs",
        flows,
        "SELECT DISTINCT contract, unnest([sender, recipient]) AS wallet FROM arriving UNION FROM earlier",
        create=True,
    )
    stage.run(f"DELETE FROM pairs WHERE wallet = {NOBODY}")
    # By the wallet alone first: DuckDB looks at one column as it reads it, at half of what a join by two takes.
    stage.run(f"""
        CREATE TABLE held AS
        SELECT {_PAIR}, hi, mid, lo, true AS base
        FROM (FROM {stage.base}.main.balances WHERE wallet IN (SELECT wallet FROM pairs))
        SEMI JOIN (FROM pairs ANTI JOIN out.stale.holdings USING ({_PAIR})
                   ANTI JOIN out.stale.contracts USING (contract)) USING ({_PAIR})
        UNION ALL SELECT {_PAIR}, hi, mid, lo, false FROM out.main.balances SEMI JOIN pairs USING ({_PAIR})""")
    opening = stage.arrow(
        f"SELECT contract, (-1)::BIGINT AS block, {tables.OPENING}::BIGINT AS log_index, "
        f"{NOBODY}::INTEGER AS sender, wallet AS recipient, hi, mid, lo FROM held ANTI JOIN earlier USING ({_PAIR})"
    )
    found = holdings.history(
        pa.concat_tables([opening, flows.cast(opening.schema)]), tables.EVERYBODY
    )
    stage.insert("standing", found, tables.with_amounts("arriving"), create=True)
    stage.run(f"""
        CREATE TABLE ended AS SELECT {_PAIR}, min(from_block) FILTER (from_block >= 0) AS until
        FROM standing ANTI JOIN earlier USING ({_PAIR}) GROUP BY {_PAIR}
        UNION ALL SELECT {_PAIR}, {WHOLE} FROM earlier""")
    stage.run(
        f"UPDATE out.main.history h SET to_block = until FROM ended e "
        f"WHERE e.contract = h.contract AND e.wallet = h.wallet AND h.to_block = {FOREVER}"
    )
    stage.run(
        f"UPDATE out.stale.holdings s SET until = {WHOLE} FROM earlier e "
        "WHERE e.contract = s.contract AND e.wallet = s.wallet"
    )
    # Also pairs that the base may not have: where one has no balance, only a scan of all its history could tell.
    stage.run(f"""
        INSERT INTO out.stale.holdings SELECT contract, wallet, until, coalesce(base, false)
        FROM ended LEFT JOIN held USING ({_PAIR}) ANTI JOIN out.stale.holdings USING ({_PAIR})
        ANTI JOIN out.stale.contracts USING (contract)
        WHERE contract < (SELECT count(*) FROM {stage.base}.main.contracts)
            AND wallet < (SELECT count(*) FROM {stage.base}.main.wallets)""")
    came = f"SELECT {', '.join(TABLES['history'])} FROM standing WHERE from_block >= 0"
    if stage.value("SELECT count(*) FROM earlier"):
        _replace(stage, "history", "earlier", _PAIR, came)
    else:
        stage.run(f"INSERT INTO out.main.history {came}")
    _replace(
        stage,
        "balances",
        "pairs",
        _PAIR,
        f"SELECT {', '.join(TABLES['balances'])} FROM standing WHERE {tables.STANDS}",
    )


def _derive_again(stage: Stage, zero: int, advance: Callable[[float], None]) -> None:
    """Derive the changed contracts from all their rows, which the delta has."""
    if not stage.value("SELECT count(*) FROM changed"):
        return
    for table in ("history", "balances", "nft_changes"):
        _replace(stage, table, "changed", "contract")
    for table in ("holdings", "blocks"):
        stage.run(f"DELETE FROM out.stale.{table} WHERE contract IN (FROM changed)")
    tables.derive_holdings(stage, zero, advance, "SEMI JOIN changed USING (contract)")


def _activity(stage: Stage) -> None:
    """Save the activity of the new rows' wallets."""
    key = "chain_id, wallet"
    stage.run(f"""
        CREATE TABLE sides AS SELECT {key}, block, sum(n) AS n, timestamp // {tables.DAY} AS day FROM (
            SELECT chain_id, sender AS wallet, block, 1 AS n FROM incoming
            UNION ALL SELECT chain_id, recipient, block, 1 FROM incoming WHERE sender <> recipient
            UNION ALL SELECT {key}, block, 0 FROM shown)
        JOIN (FROM prev.main.blocks SEMI JOIN met_blocks USING (chain_id, block) UNION ALL FROM fresh_blocks)
            USING (chain_id, block) GROUP BY ALL""")
    # Whoever had an NFT when its contract's holdings begin was seen from then on: that changes with its past.
    began = f"""
        SELECT {key} FROM {{0}}.main.nft_changes JOIN contract_chain USING (contract) SEMI JOIN (
            SELECT contract, min(block) AS block FROM {{0}}.main.nft_changes SEMI JOIN changed USING (contract)
            GROUP BY 1) USING (contract, block)"""
    stage.run(
        f"CREATE TABLE met AS SELECT {key} FROM sides UNION {began.format('prev')} UNION {began.format('now')}"
    )
    # All other changes are a transfer's or a snapshot's, by which the wallet was seen then anyway.
    stage.run(f"""
        CREATE TABLE had AS SELECT {key}, min(block) AS since FROM now.main.nft_changes
        JOIN contract_chain USING (contract) SEMI JOIN met USING ({key}) GROUP BY ALL""")
    stage.run(f"""
        CREATE TABLE were AS SELECT *, true AS base FROM {stage.base}.main.activity SEMI JOIN met USING ({key})
            ANTI JOIN out.stale.activity USING ({key})
        UNION ALL SELECT *, false FROM out.main.activity SEMI JOIN met USING ({key})""")
    _new_days(stage)
    stage.run(f"INSERT INTO out.stale.activity SELECT {key} FROM were WHERE base")
    _replace(
        stage,
        "activity",
        "were",
        key,
        f"""
        SELECT {key}, least(first, w.first_block, since), least(first, w.first_block), greatest(last, w.last_block),
            (coalesce(n, 0) + coalesce(transfers, 0))::BIGINT,
            CASE WHEN timed THEN coalesce(new_days, 0) + coalesce(active_days, 0) END
        FROM met JOIN extents e USING (chain_id)
        LEFT JOIN (SELECT {key}, min(block) AS first, max(block) AS last, sum(n) AS n FROM sides GROUP BY ALL)
            USING ({key})
        LEFT JOIN were w USING ({key}) LEFT JOIN had USING ({key})
        LEFT JOIN (SELECT {key}, count(*) AS new_days FROM days GROUP BY ALL) USING ({key})""",
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
        WHERE day IS NOT NULL AND n > 0 GROUP BY ALL""")
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
    """Save the transfers, those of changed contracts all, and their keys, new blocks and new wallets."""
    if stage.value("SELECT count(*) FROM changed"):
        _replace(stage, "transfers", "changed", "contract")
        stage.run(f"""
            INSERT INTO out.stale.contracts FROM changed ANTI JOIN out.stale.contracts USING (contract)
            WHERE contract < (SELECT count(*) FROM {stage.base}.main.contracts)""")
    duplicates.join_previous(stage, "SEMI JOIN changed USING (contract)")
    rows.save_transfers(stage)
    stage.run(f"INSERT INTO out.ingest.keys SELECT {KEY}, file, row FROM incoming")
    stage.run("INSERT INTO out.ingest.repeats FROM repeats")
    stage.run("INSERT INTO out.ingest.blocks FROM times")
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


def _contracts(stage: Stage, zero: int) -> None:
    """Save the contracts with what is counted of each."""
    positive = f"hi >= 0 AND wallet <> {zero}"
    # What was below zero stays in the count, unless the new rows go on in the block in which it became so. Whether the
    # others that fall now have been below zero before, only their history tells.
    stage.run(f"""
        CREATE TABLE below AS WITH fallen AS MATERIALIZED (
            SELECT {_PAIR}, min(from_block) FILTER (from_block >= 0) AS until FROM standing
            WHERE wallet <> {zero} GROUP BY {_PAIR} HAVING min(sort_key) < 0
                AND (contract IN (SELECT contract FROM reopened) OR NOT bool_or(from_block < 0 AND sort_key < 0)))
        SELECT contract, count(DISTINCT wallet) FILTER (now) - count(DISTINCT wallet) FILTER (before) AS below_zero
        FROM (
            SELECT {_PAIR}, from_block < to_block AS before, from_block < least(to_block, until) AS now
            FROM (FROM prev.main.history WHERE sort_key < 0 AND wallet IN (SELECT wallet FROM fallen))
                JOIN fallen USING ({_PAIR})
            UNION ALL SELECT {_PAIR}, false, from_block < to_block FROM standing SEMI JOIN fallen USING ({_PAIR})
            WHERE sort_key < 0 AND from_block >= 0)
        GROUP BY 1""")
    stage.run(f"""
        CREATE TABLE changes AS SELECT contract, coalesce(sum(n), 0)::BIGINT AS n,
            coalesce(sum(holders), 0)::BIGINT AS holders, coalesce(sum(below_zero), 0)::BIGINT AS below_zero FROM (
            SELECT contract, count(*) AS n FROM incoming GROUP BY 1 UNION ALL BY NAME
            SELECT contract, count(*) AS holders FROM standing WHERE {tables.STANDS} AND {positive} GROUP BY 1
            UNION ALL BY NAME SELECT contract, -count(*) AS holders FROM held WHERE {positive} GROUP BY 1
            UNION ALL BY NAME FROM below UNION ALL BY NAME
            SELECT contract, count(*) AS holders FROM out.main.balances SEMI JOIN changed USING (contract)
                WHERE {positive} GROUP BY 1 UNION ALL BY NAME
            {contracts.below_zero(zero, "out.main.history SEMI JOIN changed USING (contract)")} UNION ALL BY NAME
            SELECT contract, -holders AS holders, -below_zero AS below_zero
                FROM changed LEFT JOIN prev.main.contracts USING (contract))
        GROUP BY contract""")
    # A supply is what was minted, where the data reaches back to the deployment.
    stage.run("""
        CREATE TABLE resupplied AS SELECT r.rowid::INTEGER AS contract, k.deployed_block >= e.first_block AS known
        FROM contract_ranks r JOIN known k USING (chain_id, address) JOIN extents e USING (chain_id)
        LEFT JOIN prev.main.contracts p ON p.contract = r.rowid
        WHERE r.rowid IN (SELECT contract FROM changes) OR p.deployed_block IS DISTINCT FROM k.deployed_block""")
    contracts.sum_supplies(
        stage,
        zero,
        "(FROM now.main.balances SEMI JOIN (FROM resupplied WHERE known) USING (contract))",
    )
    # Of all others the count stays: no later row has an id that was there before.
    stage.run("""
        CREATE TABLE recounted AS
        SELECT contract FROM earlier UNION SELECT contract FROM reopened UNION FROM changed""")
    contracts.count_unseen(stage, zero, "now.main.", "SEMI JOIN recounted USING (contract)")
    stage.run("""
        CREATE TABLE listed AS
        SELECT r.rowid::INTEGER AS contract, r.chain_id, r.address, coalesce(s.standard, k.standard) AS standard,
            k.name, k.symbol, k.decimals, k.logo, k.verified, k.spam, k.deployer, k.deployed_block,
            coalesce(k.total_supply, CASE WHEN u.contract IS NULL THEN p.total_supply ELSE y.total_supply END),
            CASE WHEN c.contract IS NULL THEN p.holders ELSE coalesce(p.holders, 0) + c.holders END,
            CASE WHEN c.contract IS NULL THEN p.transfers ELSE coalesce(p.transfers, 0) + c.n END,
            NOT s.declared, CASE WHEN a.contract IS NULL THEN coalesce(p.unseen, 0) ELSE coalesce(ids, 0) END,
            coalesce(p.below_zero, 0) + coalesce(c.below_zero, 0)
        FROM contract_ranks r LEFT JOIN known k USING (chain_id, address) LEFT JOIN standards s ON s.contract = r.rowid
        LEFT JOIN prev.main.contracts p ON p.contract = r.rowid LEFT JOIN changes c ON c.contract = r.rowid
        LEFT JOIN resupplied u ON u.contract = r.rowid LEFT JOIN supplies y ON y.contract = r.rowid
        LEFT JOIN recounted a ON a.contract = r.rowid LEFT JOIN unseen n ON n.contract = r.rowid
        ORDER BY 1""")
    stage.run("DELETE FROM out.main.contracts")
    stage.run("INSERT INTO out.main.contracts FROM listed")
