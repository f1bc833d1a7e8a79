"""Parse rows of text into rows of integers; a row that cannot be parsed goes to ``bad`` with its reason.

Amounts and token ids, decimal or hex, become three limbs of 26 digits, exactly or not at all.

A transfer is identified by its chain, its transaction's hash and its log index. Rows that were ingested before are
set apart in ``ingest.repeats``; rows that contradict one with the same key are refused. The keys of all transfers are
in the table ``ingest.keys``: the hash as two numbers of 128 bits, ``tx`` and ``low``. A transfer and its key have the
numbers of the source and the row that gave them.
"""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pyarrow as pa

from nbext.core.uint256 import LIMB_DIGITS, MAX_UINT256, uint256_of
from nbext.engine.ingest.previous import REPEATED
from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.stage import Stage
from nbext.errors import IngestError

DECIMAL = "DECIMAL(38,0)"


def is_amount(digits: str) -> str:
    """Return the SQL of whether a text is a whole number from 0 to 2**256 - 1, in decimal digits."""
    return (
        f"(regexp_full_match({digits}, '[0-9]{{1,78}}') "
        f"AND (length({digits}) < 78 OR {digits} <= '{MAX_UINT256}'))"
    )


def limbs(digits: str) -> tuple[str, str, str]:
    """Return the SQL of the three limbs of a text that is an amount; NULL where a part is not digits."""
    # Texts of up to 26 digits, nearly all of them, are cast once. The cast goes through HUGEINT, because DuckDB
    # parses text as DECIMAL many times slower.
    width = LIMB_DIGITS
    cast = f"TRY_CAST({{}} AS HUGEINT)::{DECIMAL}"
    zero = f"0::{DECIMAL}"
    lo = cast.format(
        f"CASE WHEN length({digits}) <= {width} THEN {digits} ELSE right({digits}, {width}) END"
    )
    mid = cast.format(
        f"substr({digits}, greatest(length({digits}) - {2 * width - 1}, 1), "
        f"least(length({digits}) - {width}, {width}))"
    )
    hi = cast.format(f"left({digits}, length({digits}) - {2 * width})")
    return (
        f"CASE WHEN length({digits}) > {2 * width} THEN {hi} ELSE {zero} END",
        f"CASE WHEN length({digits}) > {width} THEN {mid} ELSE {zero} END",
        lo,
    )


def spell_hex(stage: Stage, relation: str, column: str) -> None:
    """Create ``hex_digits``: the decimal digits of each distinct hex text of a column that is a uint256."""
    # By Python's integers, because SQL has none of 256 bits; distinct texts only, because Python reads them one by one.
    stage.run("CREATE OR REPLACE TABLE hex_digits (text VARCHAR, digits VARCHAR)")
    found = stage.connection.cursor().execute(
        f"SELECT DISTINCT {column} AS text FROM {relation} WHERE {column} LIKE '0x%'"
    )
    while texts := [row[0] for row in found.fetchmany(100_000)]:
        read = [(text, number) for text in texts if (number := uint256_of(text)) is not None]
        stage.insert(
            "hex_digits",
            pa.table(
                {
                    "text": pa.array([text for text, _ in read], pa.string()),
                    "digits": pa.array([str(number) for _, number in read], pa.string()),
                }
            ),
        )


def decimal(number: int) -> str:
    """Return the SQL of a whole number as a limb's type: compared with another type, a column is cast."""
    return f"{number}::{DECIMAL}"


# Seconds of the year 2200: a later time is in another unit. Ethereum's own years are 1.4 to 7.2e9.
LATEST = 7_258_118_400
REASONS = (
    ("contract IS NULL", "token address is not an address", "contract_text"),
    ("sender IS NULL", "sender is not an address", "sender_text"),
    ("recipient IS NULL", "recipient is not an address", "recipient_text"),
    (
        "NOT coalesce({amount}, false)",
        "value is not a whole number from 0 to 2**256-1",
        "value_text",
    ),
    ("tx IS NULL OR low IS NULL", "transaction hash is not 0x and 64 hex digits", "tx_text"),
    ("coalesce(log_index, -1) < 0", "log index is not a whole number", "log_text"),
    ("coalesce(block, -1) < 0", "block number is not a whole number", "block_text"),
    ("timed AND (seconds IS NULL OR seconds < 0)", "block timestamp is not a time", "time_text"),
    (
        "counted AND coalesce(count, -1) < 0",
        "token value is not a whole number below 2**63",
        "count_text",
    ),
)
_TEXTS = {
    "contract_text": "contract",
    "sender_text": "sender",
    "recipient_text": "recipient",
    "value_text": "value",
    "tx_text": "tx",
    "log_text": "log_index",
    "block_text": "block",
    "time_text": "timestamp",
    "count_text": "count",
}


# Of a row's number: a batch is several rows, and all after the first are this many further on, and again.
ELEMENT = 2**40
# Rows without a log index get made-up ones from here on, above any real one, so that both sorts stay apart.
MADE_UP = 2**32


def begin(stage: Stage) -> None:
    """Create the table that rows of transfers go to."""
    # Packing is named: left to choose, DuckDB tries all ways on each of 10 million rows, as slow as writing them.
    whole, upper, amount = (
        "USING COMPRESSION " + how for how in ("BITPACKING", "RLE", "UNCOMPRESSED")
    )

    stage.run(f"""CREATE TABLE incoming (file INTEGER {whole}, row BIGINT {whole}, chain_id BIGINT {whole},
        contract INTEGER {whole}, sender INTEGER {whole}, recipient INTEGER {whole},
        hi {DECIMAL} {upper}, mid {DECIMAL} {upper}, lo {DECIMAL} {amount}, tx UUID {amount}, low UUID {amount},
        key_index BIGINT {whole},
        log_index BIGINT {whole}, block BIGINT {whole}, seconds BIGINT {whole}, count BIGINT {whole},
        fault INTEGER {whole})""")


def check_times(stage: Stage, file: Opened) -> None:
    """Refuse a file whose times are not in seconds: its days, and every question by time, would be wrong."""
    if not file.has("timestamp"):
        return
    seconds = file.seconds()
    found = stage.rows(
        f"SELECT row, {seconds} FROM {file.relation} WHERE {seconds} > {LATEST} ORDER BY row LIMIT 1"
    )
    if found:
        row, value = found[0]
        raise IngestError(
            f"{file.source.shown}, row {row}: {file.columns['timestamp']} is {value}, after the year 2199. "
            "It looks like milliseconds; times must be seconds since 1970.",
            path=file.source.name,
            row=row,
        )


def take(stage: Stage, file: Opened, chain: int) -> None:
    """Add a file's rows; those that cannot be parsed go to ``bad`` with their reason.

    Raises
    ------
    IngestError
        No row can be parsed, or times are in milliseconds.
    """
    check_times(stage, file)
    if not file.has("log_index"):
        stage.run("INSERT INTO odd VALUES (?, 'unindexed', ?)", [file.number, file.rows])
    _insert(stage, file, chain, hexed=file.types["value"] == "BLOB")
    faulty = f"FROM incoming WHERE file = {file.number} AND fault IS NOT NULL"
    if (
        stage.value(f"SELECT count(*) {faulty}")
        and file.types["value"] == "VARCHAR"
        and stage.value(
            f"SELECT count(*) FROM {file.relation} SEMI JOIN (SELECT row {faulty}) USING (row) "
            f"WHERE {file.text('value')} LIKE '0x%'"
        )
    ):
        stage.run(f"DELETE FROM incoming WHERE file = {file.number}")
        _insert(stage, file, chain, hexed=True)
    set_bad_apart(stage, file)


def _insert(stage: Stage, file: Opened, chain: int, *, hexed: bool) -> None:
    join = ""
    digits = "value_text"
    if hexed:
        spell_hex(stage, file.relation, file.text("value"))
        join, digits = (
            "LEFT JOIN hex_digits h ON h.text = value_text",
            "coalesce(h.digits, value_text)",
        )
    stage.run(
        "INSERT INTO incoming "
        + parsed(
            file.number,
            chain,
            f"""
            SELECT f.*, c.contract, s.wallet AS sender, r.wallet AS recipient, {digits} AS digits
            FROM ({texts(stage, file)}) f
            LEFT JOIN contract_map c ON c.address = contract_text AND c.chain_id = {chain}
            LEFT JOIN wallet_map s ON s.spelled = spelling(sender_text)
            LEFT JOIN wallet_map r ON r.spelled = spelling(recipient_text) {join}""",
        )
    )


def parsed(number: int, chain: int, named: str) -> str:
    """Return the SQL of rows as ``incoming`` has them, of the SQL of `texts` with who took part and ``digits``."""
    hi, mid, lo = limbs("digits")
    faults = " ".join(
        f"WHEN {test.format(amount=is_amount('digits'))} THEN {n}"
        for n, (test, _, _) in enumerate(REASONS)
    )
    return f"""
        SELECT {number} AS file, row, {chain} AS chain_id, contract, sender, recipient, {hi} AS hi, {mid} AS mid,
            {lo} AS lo, tx, low, key_index, log_index, block, seconds, count, CASE {faults} END AS fault
        FROM ({named})"""


def texts(stage: Stage, file: Opened) -> str:
    """Return the SQL of a file's rows: what is text as it is written, numbers parsed, NULL where that fails."""
    tx, log = file.text("tx"), file.whole("log_index")
    block = file.whole("block")
    # All 32 bytes: test chains number their hashes, which then differ in the last bytes only.
    key, low = (
        f"CASE WHEN length({tx}) = 66 THEN TRY_CAST(substr({tx}, {start}, 32) AS UUID) END"
        for start in (3, 35)
    )
    key_index = log
    if not file.has("log_index"):
        key, low, key_index, log = _without_log_index(stage, file)
    elif file.has("count"):
        key = _of_a_batch(file, key)
    where = f"WHERE {file.text('type')} = 'token_transfer'" if file.has("type") else ""
    return f"""
        SELECT row, {file.text("contract")} AS contract_text, {file.text("sender")} AS sender_text,
            {file.text("recipient")} AS recipient_text, {file.text("value")} AS value_text,
            {key} AS tx, {low} AS low, {key_index} AS key_index, {log} AS log_index, {block} AS block,
            {str(file.has("timestamp")).lower()} AS timed, {file.seconds()} AS seconds,
            {str(file.has("count")).lower()} AS counted, {file.text("count")} AS count_text,
            {file.whole("count")} AS count
        FROM {file.relation} {where}"""


def _of_a_batch(file: Opened, key: str) -> str:
    """Return the SQL of the first half of a key: of an ERC1155's row that of its token id, as a log can move many."""
    tx = file.text("tx")
    own = f"CASE WHEN length({tx}) = 66 THEN md5(lower({tx}) || '|' || {file.text('value')})::UUID END"
    return (
        f"CASE WHEN {file.text('standard')} IS DISTINCT FROM 'ERC1155' THEN {key} ELSE {own} END"
        if file.has("standard")
        else own
    )


def _without_log_index(stage: Stage, file: Opened) -> tuple[str, str, str, str]:
    """Return the SQL of a key from a row's contents, and of its order: Etherscan's files have no log index."""
    same = ", ".join(
        f"lower({file.text(c)})" for c in ("tx", "contract", "sender", "recipient", "value")
    )
    if file.has("count"):  # of an ERC721 some files say that one was sent, and others say nothing
        many = f"{file.text('standard')} = 'ERC1155'" if file.has("standard") else "true"
        same += f", CASE WHEN {many} THEN {file.whole('count')} END"
    tx = file.text("tx")
    # Counted, since one transaction can move the same amount between the same two wallets twice.
    nth = f"row_number() OVER (PARTITION BY {same} ORDER BY row)"
    key = f"CASE WHEN length({tx}) = 66 THEN md5(concat_ws('|', {same}, {nth}))::UUID END"
    # The order of a block's logs is the file's, which may begin with the newest.
    block = file.whole("block")
    newest_first = stage.value(
        f"SELECT first({block} ORDER BY row) > last({block} ORDER BY row) FROM {file.relation}"
    )
    of = tx if file.has("tx_index") else block
    place = f"row_number() OVER (PARTITION BY {of} ORDER BY row {'DESC' if newest_first else ''})"
    tx_index = f"coalesce({file.whole('tx_index')}, 0)"
    return (
        key,
        f"'{UUID(int=0)}'::UUID",
        "(-1)::BIGINT",
        f"{MADE_UP} + {tx_index} * 1000000 + {place}",
    )


def set_bad_apart(stage: Stage, file: Opened, table: str = "incoming") -> None:
    """Move a file's rows that have a fault from a table to ``bad``; refuse the file if no row is left."""
    written = ", ".join(f"{file.text(ours)} AS {alias}" for alias, ours in _TEXTS.items())
    why = " ".join(f"WHEN {n} THEN '{words}'" for n, (_, words, _) in enumerate(REASONS))
    value = " ".join(f"WHEN {n} THEN {column}::VARCHAR" for n, (_, _, column) in enumerate(REASONS))
    count, good = stage.rows(
        f"SELECT count(fault), count(*) - count(fault) FROM {table} WHERE file = {file.number}"
    )[0]
    if not count:
        return
    stage.run(f"""
        INSERT INTO bad
        SELECT {file.number}, i.row % {ELEMENT}, CASE i.fault {why} END, left(CASE i.fault {value} END, 200)
        FROM {table} i JOIN (SELECT row, {written} FROM {file.relation}) f ON f.row = i.row
        WHERE i.file = {file.number} AND i.fault IS NOT NULL""")
    if not good:
        refuse_all(stage, file)
    stage.run(f"DELETE FROM {table} WHERE file = {file.number} AND fault IS NOT NULL")


def refuse_all(stage: Stage, file: Opened) -> None:
    """Raise the error of a file without a usable row; it names the first."""
    row, why, value = stage.rows(
        "SELECT row, why, value FROM bad WHERE file = ? ORDER BY row LIMIT 1", [file.number]
    )[0]
    raise IngestError(
        f"{file.source.shown}, row {row}: {why}: {str(value)[:80]!r}. No row of the file is usable.",
        path=file.source.name,
        row=row,
    )


def save(stage: Stage) -> None:
    """Fill ``out.transfers``, sorted by contract and place; a transfer that names no count moves one token."""
    stage.run(f"""
        INSERT INTO out.transfers
        SELECT contract, block, log_index, sender, recipient, hi, mid, lo,
            CASE standard WHEN 'ERC721' THEN 1 WHEN 'ERC1155' THEN coalesce(given, 1) END, source, row, given
        FROM arrived JOIN standards USING (contract)
        ORDER BY contract, {moment(stage)}, {pair("sender", "recipient")}""")


def moment(stage: Stage) -> str:
    """Return the SQL to order one contract's logs by: one integer wherever block and log index fit in one."""
    # DuckDB sorts by one 64-bit key in two thirds of the time that it takes for two.
    tables = ("incoming", *(["prev.main.transfers"] if stage.previous else []))
    greatest = [
        stage.rows(f"SELECT coalesce(max(block), 0), coalesce(max(log_index), 0) FROM {t}")[0]
        for t in tables
    ]
    fits = all(block < 2**29 and log_index < 2**33 for block, log_index in greatest)
    return f"(block * {2**33} + log_index)" if fits else "block, log_index"


def pair(first: str, second: str) -> str:
    """Return the SQL of two ranks as one key that orders by the first, then by the second."""
    return f"({first}::BIGINT * {2**32} + {second})"


# Keys whose hashes are in memory together: 128 MB.
AT_ONCE = 16_000_000
KEY = "chain_id, tx, low, key_index"
_HASH = f"hash({KEY})"
_STORY = "(contract, sender, recipient, hi, mid, lo, block)"


def find_repeated(stage: Stage) -> None:
    """Create ``repeated``, the rows whose key was seen before, and ``contradictions``, those of other contents.

    Of two rows the first stays. A contradiction names both: ``file`` and ``row``, and of the first ``source`` and
    ``their_row``.
    """
    _find_repeated_keys(stage)
    stage.run("CREATE TABLE repeated (file INTEGER, row BIGINT)")
    stage.run(
        "CREATE TABLE contradictions (file INTEGER, row BIGINT, source INTEGER, their_row BIGINT)"
    )
    stage.run(f"""
        CREATE TEMP TABLE met AS SELECT file, row, source, their_row, other FROM (
            SELECT file, row, first(file) OVER w AS source, first(row) OVER w AS their_row, row_number() OVER w AS nth,
                {_STORY} <> first({_STORY}) OVER w OR coalesce(count <> first(count) OVER w, false) AS other
            FROM incoming SEMI JOIN repeated_keys USING ({KEY}) WINDOW w AS (PARTITION BY {KEY} ORDER BY file, row))
        WHERE nth > 1""")
    stage.run("INSERT INTO repeated SELECT file, row FROM met")
    stage.run("INSERT INTO contradictions SELECT file, row, source, their_row FROM met WHERE other")
    stage.drop("met", "repeated_keys")
    if stage.previous:
        _find_stored(stage)


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
        here, there = (_STORY.replace("(", f"({one}.").replace(", ", f", {one}.") for one in "is")
        stage.run(f"""
            INSERT INTO contradictions SELECT i.file, i.row, m.source, m.their_row
            FROM met m JOIN incoming i USING (file, row)
            JOIN ({in_todays_ranks(stage, whole)}) s ON s.source = m.source AND s.row = m.their_row
            WHERE {here} <> {there} OR coalesce(i.count <> s.given, false)""")
    stage.drop("met")


def drop_repeated(stage: Stage, first: int) -> dict[str, int]:
    """Set the rows in ``repeated``, and what repeats a transfer by its contents, apart in ``repeats``.

    Returns how many rows of the sources from ``first`` on were set apart: all, and those by their contents.
    """
    matched_by_content = _repeat_by_contents(stage, first)
    names = REPEATED.replace("source", "file AS source").replace("given", "count AS given")
    stage.run(
        f"CREATE TABLE repeats AS SELECT {names} FROM incoming SEMI JOIN repeated USING (file, row)"
    )
    duplicates = stage.value("SELECT count(*) FROM repeats WHERE source >= ?", [first])
    stage.run(
        "DELETE FROM incoming USING repeated r WHERE incoming.file = r.file AND incoming.row = r.row"
    )
    stage.drop("repeated", "contradictions")
    return {"duplicates": duplicates, "matched_by_content": matched_by_content}


def _repeat_by_contents(stage: Stage, first: int) -> int:
    """Add to ``repeated`` the rows that another source has under a key of another sort; return how many.

    A row without a log index has no key in common with the same transfer from a source with log indexes. Both
    sources have every transfer of a contract between two wallets in a block: of k such rows of one amount with a log
    index and n without, the larger number is kept: those with a log index first, and of these the ones ingested before.
    """
    loose = f"log_index >= {MADE_UP}"
    here = stage.value(f"SELECT count(*) FROM incoming WHERE {loose}")
    before = stage.previous and stage.value(
        f"SELECT count(*) FROM prev.main.transfers WHERE {loose}"
    )
    if not here and not before:
        return 0
    story = "contract, sender, recipient, hi, mid, lo, block"
    stage.run(f"CREATE TEMP TABLE taken AS SELECT {story}, log_index FROM ({_taken_before(stage)})")
    # Rows without a log index that this run or an earlier one has; and rows with one that an earlier run has without.
    stage.run(f"""
        CREATE TEMP TABLE matched_by_content AS
        SELECT file, row FROM (
            SELECT file, row, {story}, row_number() OVER (PARTITION BY file, {story} ORDER BY row) AS nth
            FROM incoming WHERE {loose})
        JOIN (SELECT {story}, count(*) AS n FROM (
                SELECT {story} FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {loose}
                UNION ALL SELECT {story} FROM taken WHERE NOT {loose}) GROUP BY ALL) USING ({story})
        WHERE nth <= n
        UNION ALL
        SELECT file, row FROM (
            SELECT file, row, {story}, row_number() OVER (PARTITION BY {story} ORDER BY file, row) AS nth
            FROM incoming ANTI JOIN repeated USING (file, row) WHERE NOT {loose})
        JOIN (SELECT {story}, count(*) AS n FROM taken WHERE {loose} GROUP BY ALL) USING ({story})
        WHERE nth <= n""")
    stage.run(
        "DELETE FROM matched_by_content m USING repeated r WHERE m.file = r.file AND m.row = r.row"
    )
    stage.run("INSERT INTO repeated SELECT file, row FROM matched_by_content")
    found = int(stage.value("SELECT count(*) FROM matched_by_content WHERE file >= ?", [first]))
    stage.drop("taken", "matched_by_content")
    return found


def _taken_before(stage: Stage) -> str:
    """Return the SQL of the earlier transfers of the blocks that occur again, by this run's ranks."""
    columns = "block, log_index, hi, mid, lo"
    if not stage.previous:
        return f"SELECT contract, sender, recipient, {columns} FROM incoming WHERE false"
    if stage.appending:
        return (
            f"SELECT contract, sender, recipient, {columns} FROM prev.main.transfers "
            "SEMI JOIN (SELECT block FROM incoming) USING (block)"
        )
    return f"""
        SELECT c.rowid::INTEGER AS contract, s.rowid::INTEGER AS sender, r.rowid::INTEGER AS recipient, {columns}
        FROM (SELECT * FROM prev.main.transfers SEMI JOIN (SELECT block FROM incoming) USING (block)) t
        JOIN prev.main.contracts pc ON pc.contract = t.contract
        JOIN contract_ranks c ON c.chain_id = pc.chain_id AND c.address = pc.address
        JOIN prev.main.wallets ps ON ps.wallet = t.sender JOIN wallets s ON s.address = ps.address
        JOIN prev.main.wallets pr ON pr.wallet = t.recipient JOIN wallets r ON r.address = pr.address"""


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
    """Fill ``out.ingest.keys``: the keys of all transfers."""
    create_keys(stage)
    columns = f"{KEY}, source, row"
    before = f"SELECT {columns} FROM prev.ingest.keys UNION ALL " if stage.previous else ""
    stage.run(f"INSERT INTO out.ingest.keys {before}SELECT {KEY}, file, row FROM incoming")


def save_repeats(stage: Stage) -> None:
    """Fill ``out.ingest.repeats``: the rows that repeat a transfer, of this run and of the generation before."""
    before = f"{in_todays_ranks(stage, 'prev.ingest.repeats')} UNION ALL " if stage.previous else ""
    stage.run(f"CREATE TABLE out.ingest.repeats AS {before}SELECT {REPEATED} FROM repeats")
    stage.drop("repeats")


def take_again(stage: Stage) -> None:
    """Add the rows that are to be decided again, because something was taken out."""
    names = REPEATED.replace("source", "file").replace("given", "count")
    stage.run(f"INSERT INTO incoming ({names}) {in_todays_ranks(stage, 'prev.ingest.again')}")


def in_todays_ranks(stage: Stage, relation: str) -> str:
    """Return the SQL of rows of the generation before, as `previous.REPEATED` names them, by this run's ranks."""
    if stage.appending:  # numbers stay
        return f"SELECT {REPEATED} FROM {relation} t"
    columns = (
        REPEATED.replace("contract", "c.rowid::INTEGER AS contract")
        .replace("sender", "s.rowid::INTEGER AS sender")
        .replace("recipient", "r.rowid::INTEGER AS recipient")
        .replace("chain_id", "t.chain_id AS chain_id")
    )
    return f"""
        SELECT {columns} FROM {relation} t
        JOIN prev.main.contracts pc ON pc.contract = t.contract
        JOIN contract_ranks c ON c.chain_id = pc.chain_id AND c.address = pc.address
        JOIN prev.main.wallets ps ON ps.wallet = t.sender JOIN wallets s ON s.address = ps.address
        JOIN prev.main.wallets pr ON pr.wallet = t.recipient JOIN wallets r ON r.address = pr.address"""
