"""Which rows repeat a transfer, and which contradict one: every transfer is counted once.

A transfer is identified by its chain, its transaction's hash and its log index. Rows that were ingested before are
set apart in ``ingest.repeats``; rows that contradict one with the same key are refused. The keys of all transfers are
in the table ``ingest.keys``: the hash as two numbers of 128 bits, ``tx`` and ``low``. A transfer and its key have the
numbers of the source and the row that gave them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from nbext.core.uint256 import Limbs, join
from nbext.engine.ingest.derive.rows import ELEMENT, MADE_UP
from nbext.engine.ingest.stage import CONTENT, KEY, REPEATED, Stage
from nbext.errors import IngestError

# An error of rows at odds with others, and the number of the file that is at odds with itself, if one is.
Conflict = tuple[IngestError, int | None]
CONFLICTS_SHOWN = 3
# Keys whose hashes are in memory together: 128 MB.
AT_ONCE = 16_000_000

_HASH = f"hash({KEY})"


def find_duplicates(stage: Stage) -> None:
    """Create ``repeated``, the rows whose key was seen before, and ``contradictions``, those of other contents.

    Of two rows the first stays. A contradiction names both: ``file`` and ``row``, and of the first ``source`` and
    ``their_row``.
    """
    _find_repeated_keys(stage)
    compare_repeated(stage, "incoming")
    if stage.previous:
        _find_stored(stage)


def compare_repeated(stage: Stage, rows: str) -> None:
    """Create ``repeated`` and ``contradictions`` of the rows that have one of ``repeated_keys``."""
    stage.run("CREATE TABLE repeated (file INTEGER, row BIGINT)")
    stage.run(
        "CREATE TABLE contradictions (file INTEGER, row BIGINT, source INTEGER, their_row BIGINT)"
    )
    stage.run(f"""
        CREATE TEMP TABLE met AS SELECT file, row, source, their_row, other FROM (
            SELECT file, row, first(file) OVER w AS source, first(row) OVER w AS their_row, row_number() OVER w AS nth,
                ({CONTENT}) <> first(({CONTENT})) OVER w OR coalesce(count <> first(count) OVER w, false) AS other
            FROM {rows} SEMI JOIN repeated_keys USING ({KEY}) WINDOW w AS (PARTITION BY {KEY} ORDER BY file, row))
        WHERE nth > 1""")
    stage.run("INSERT INTO repeated SELECT file, row FROM met")
    stage.run("INSERT INTO contradictions SELECT file, row, source, their_row FROM met WHERE other")
    stage.drop("met", "repeated_keys")


def _find_stored(stage: Stage) -> None:
    """Add to ``repeated`` and ``contradictions`` the rows whose key the generation before has."""
    # Mostly no transaction is known. To look for one reads a column of all keys, and takes a third of the join.
    known = stage.value(
        "SELECT count(*) > 0 FROM (FROM prev.ingest.keys SEMI JOIN incoming USING (tx) LIMIT 1)"
    )
    stage.run(
        "CREATE TEMP TABLE met AS SELECT i.file, i.row, k.source, k.row AS their_row "
        f"FROM incoming i JOIN prev.ingest.keys k USING ({KEY}) WHERE {known}"
    )
    stage.run(
        "INSERT INTO repeated SELECT DISTINCT file, row FROM met "
        "ANTI JOIN (SELECT file, row FROM repeated) r USING (file, row)"
    )
    if stage.value("SELECT count(*) FROM met"):
        whole = (
            "(SELECT t.*, NULL AS tx, NULL AS low, NULL AS key_index, c.chain_id FROM prev.main.transfers t "
            "JOIN prev.main.contracts c USING (contract) "
            "SEMI JOIN met ON met.source = t.source AND met.their_row = t.row)"
        )
        here, there = (f"({one}.{CONTENT.replace(', ', f', {one}.')})" for one in "is")
        stage.run(f"""
            INSERT INTO contradictions SELECT i.file, i.row, m.source, m.their_row
            FROM met m JOIN incoming i USING (file, row)
            JOIN ({in_todays_ranks(stage, whole)}) s ON s.source = m.source AND s.row = m.their_row
            WHERE {here} <> {there} OR coalesce(i.count <> s.given, false)""")
    stage.drop("met")


def set_repeated_apart(stage: Stage) -> dict[str, int]:
    """Set the rows in ``repeated``, and what repeats a transfer by its contents, apart in ``repeats``.

    Returns how many rows of this run's sources were set apart: all, and those by their contents.
    """
    matched_by_content = _repeat_by_contents(stage)
    names = REPEATED.replace("source", "file AS source").replace("given", "count AS given")
    stage.run(
        f"CREATE TABLE repeats AS SELECT {names} FROM incoming SEMI JOIN repeated USING (file, row)"
    )
    duplicates = stage.value("SELECT count(*) FROM repeats WHERE source >= ?", [stage.first])
    stage.run(
        "DELETE FROM incoming USING repeated r WHERE incoming.file = r.file AND incoming.row = r.row"
    )
    stage.drop("repeated", "contradictions")
    return {"duplicates": duplicates, "matched_by_content": matched_by_content}


def _repeat_by_contents(stage: Stage) -> int:
    """Add to ``repeated`` the rows that another source has under a key of another sort; return how many.

    A row without a log index has no key in common with the same transfer from a source with log indexes. Both
    sources have every transfer of a contract between two wallets in a block: of k such rows of one amount with a log
    index and n without, the larger number is kept: those with a log index first, and of these the ones ingested before.
    """
    made_up = f"log_index >= {MADE_UP}"
    here = stage.value(f"SELECT count(*) FROM incoming WHERE {made_up}")
    before = stage.previous and stage.value(
        f"SELECT count(*) FROM prev.main.transfers WHERE {made_up}"
    )
    if not here and not before:
        return 0
    stored = (
        "(SELECT * FROM prev.main.transfers SEMI JOIN (SELECT block FROM incoming) USING (block))"
    )
    columns = f"{CONTENT}, log_index"
    taken = (
        in_todays_ranks(stage, stored, columns)
        if stage.previous
        else f"SELECT {columns} FROM incoming WHERE false"
    )
    stage.run(f"CREATE TEMP TABLE taken AS {taken}")
    # Rows without a log index that this run or an earlier one has; and rows with one that an earlier run has without.
    stage.run(f"""
        CREATE TEMP TABLE matched_by_content AS
        SELECT file, row FROM (
            SELECT file, row, {CONTENT}, row_number() OVER (PARTITION BY file, {CONTENT} ORDER BY row) AS nth
            FROM incoming WHERE {made_up})
        JOIN (SELECT {CONTENT}, count(*) AS n FROM (
                SELECT {CONTENT} FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {made_up}
                UNION ALL SELECT {CONTENT} FROM taken WHERE NOT {made_up}) GROUP BY ALL) USING ({CONTENT})
        WHERE nth <= n
        UNION ALL
        SELECT file, row FROM (
            SELECT file, row, {CONTENT}, row_number() OVER (PARTITION BY {CONTENT} ORDER BY file, row) AS nth
            FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {made_up})
        JOIN (SELECT {CONTENT}, count(*) AS n FROM taken WHERE {made_up} GROUP BY ALL) USING ({CONTENT})
        WHERE nth <= n""")
    stage.run(
        "DELETE FROM matched_by_content m USING repeated r WHERE m.file = r.file AND m.row = r.row"
    )
    stage.run("INSERT INTO repeated SELECT file, row FROM matched_by_content")
    found = int(
        stage.value("SELECT count(*) FROM matched_by_content WHERE file >= ?", [stage.first])
    )
    stage.drop("taken", "matched_by_content")
    return found


def _find_repeated_keys(stage: Stage) -> None:
    """Create ``repeated_keys``: the keys that more than one row has."""
    # Nearly no key is repeated. Sorting 64-bit hashes in an array takes a quarter of the time of grouping by the
    # keys; only where two hashes are the same are keys compared.
    shares = -(-stage.value("SELECT count(*) FROM incoming") // AT_ONCE)
    found = [np.empty(0, np.uint64)]
    for share in range(shares):
        hashes = stage.arrow(
            f"SELECT {_HASH} AS h FROM incoming WHERE {shares} = 1 OR h % {shares} = {share}"
        )
        ordered = np.sort(hashes["h"].to_numpy())
        found.append(ordered[1:][ordered[1:] == ordered[:-1]])
    stage.run("CREATE TEMP TABLE alike (h UBIGINT)")
    stage.insert("alike", pa.table({"h": np.unique(np.concatenate(found))}))
    stage.run(
        f"CREATE TABLE repeated_keys AS SELECT {KEY} FROM incoming WHERE {_HASH} IN (FROM alike) "
        "GROUP BY ALL HAVING count(*) > 1"
    )
    stage.drop("alike")


def create_keys(stage: Stage) -> None:
    """Create ``out.ingest.keys``."""
    # Runs: the logs of a transaction follow each other. Left to choose, DuckDB tries all ways, as slow as writing.
    stage.run(
        "CREATE TABLE out.ingest.keys (chain_id BIGINT USING COMPRESSION RLE, tx UUID USING COMPRESSION RLE, "
        "low UUID USING COMPRESSION RLE, key_index BIGINT USING COMPRESSION BITPACKING, "
        "source INTEGER USING COMPRESSION RLE, row BIGINT USING COMPRESSION BITPACKING)"
    )


def save_keys(stage: Stage) -> None:
    """Fill ``out.ingest.keys`` and ``out.ingest.repeats``, of this run and of the generation before."""
    create_keys(stage)
    keys, repeats = (
        (
            f"SELECT {KEY}, source, row FROM prev.ingest.keys UNION ALL ",
            f"{in_todays_ranks(stage, 'prev.ingest.repeats')} UNION ALL ",
        )
        if stage.previous
        else ("", "")
    )
    stage.run(f"INSERT INTO out.ingest.keys {keys}SELECT {KEY}, file, row FROM incoming")
    stage.run(f"CREATE TABLE out.ingest.repeats AS {repeats}SELECT {REPEATED} FROM repeats")
    stage.drop("repeats")


def join_previous(stage: Stage, of: str = "") -> None:
    """Create ``arrived``: the new transfers and those of the generation before, by this run's ranks.

    ``of`` is the SQL of a join that says which of those before.
    """
    columns = f"{CONTENT}, log_index, source, row, given"
    before = (
        f"UNION ALL {in_todays_ranks(stage, f'(FROM prev.main.transfers {of})', columns)}"
        if stage.previous
        else ""
    )
    stage.run(
        f"CREATE OR REPLACE VIEW arrived AS SELECT {CONTENT}, log_index, file AS source, row, count AS given "
        f"FROM incoming {before}"
    )


def in_todays_ranks(stage: Stage, relation: str, columns: str = REPEATED) -> str:
    """Return the SQL of rows of the generation before by this run's ranks."""
    if stage.appending:  # numbers stay
        return f"SELECT {columns} FROM {relation} t"
    for column, sql in (
        ("contract", "c.now AS contract"),
        ("sender", "s.now AS sender"),
        ("recipient", "r.now AS recipient"),
    ):
        columns = columns.replace(column, sql)
    return f"""
        SELECT {columns} FROM {relation} t JOIN contract_moves c ON c.old = t.contract
        JOIN wallet_moves s ON s.old = t.sender JOIN wallet_moves r ON r.old = t.recipient"""


def contradiction(stage: Stage) -> Conflict | None:
    """Return the error of rows that contradict others of the same transaction and log index, with both versions."""
    within, across = stage.rows(
        "SELECT min(file) FILTER (source = file), count(*) FILTER (source <> file) FROM contradictions"
    )[0]
    if within is None and not across:
        return None
    found = stage.rows(
        "SELECT file, row, source, their_row FROM contradictions "
        f"WHERE {'source <> file' if across else f'file = {within}'} ORDER BY ALL"
    )
    lines = []
    for file, row, source, their_row in found[:CONFLICTS_SHOWN]:
        lines += [
            f"  {stage.shown(file)}, row {row % ELEMENT:,}: {_version(stage, file, row)}",
            f"    {stage.shown(source)}, row {their_row % ELEMENT:,}: {_version(stage, source, their_row)}",
        ]
    many = (
        "1 row contradicts another" if len(found) == 1 else f"{len(found):,} rows contradict others"
    )
    conflict = conflict_text(_first_block(stage), lines, len(found), inside=not across)
    return stage.fault(
        found[0][0],
        f"{many} with the same transaction and log index. {conflict}",
        found[0][1] % ELEMENT,
    ), None if across else within


def _version(stage: Stage, source: int, row: int) -> str:
    """Return the contents of a row, of this run or of the generation before, in words."""
    columns = "block, log_index, c.address, s.address, r.address, hi, mid, lo"
    found = stage.rows(
        f"""
        SELECT {columns}, count FROM incoming JOIN contract_ranks c ON c.rowid = contract
        JOIN wallets s ON s.rowid = sender JOIN wallets r ON r.rowid = recipient
        WHERE file = $1 AND row = $2"""
        if source >= stage.first
        else f"""
        SELECT {columns}, given FROM prev.main.transfers t JOIN prev.main.contracts c ON c.contract = t.contract
        JOIN prev.main.wallets s ON s.wallet = sender JOIN prev.main.wallets r ON r.wallet = recipient
        WHERE source = $1 AND row = $2""",
        [source, row],
    )[0]
    block, log_index, contract, sender, recipient, hi, mid, lo, count = found
    value = join(Limbs(int(hi), int(mid), int(lo)))
    many = f", {count:,} of them" if count is not None else ""
    return f"block {block:,}, log {log_index:,}: {contract} from {sender} to {recipient}, {value}{many}"


def _first_block(stage: Stage) -> int:
    """Return the first block of any row that contradicts another, or is contradicted."""
    sides = [
        "SELECT block FROM incoming SEMI JOIN (FROM contradictions SELECT file, row UNION ALL "
        "FROM contradictions SELECT source AS file, their_row AS row) USING (file, row)"
    ]
    if stage.previous:
        sides.append(
            "SELECT block FROM prev.main.transfers "
            "SEMI JOIN (SELECT source, their_row AS row FROM contradictions) USING (source, row)"
        )
    return int(stage.value(f"SELECT min(block) FROM ({' UNION ALL '.join(sides)})"))


def conflict_text(block: int, lines: list[str], found: int, *, inside: bool) -> str:
    """Return what to do where rows are at odds from a block on, within one file or not, and some of those ``found``."""
    advice = (
        "Correct the file."
        if inside
        else f"If a chain was reorganised, ingest its new blocks with --replace-from {block}; "
        "if a file is wrong, take it out with `nbext remove`."
    )
    more = [f"  and {found - CONFLICTS_SHOWN:,} more"] if found > CONFLICTS_SHOWN else []
    return "\n".join([advice, *lines, *more])
