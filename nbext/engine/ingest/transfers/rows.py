"""Parse rows of text into rows of integers; a row that cannot be parsed goes to ``bad`` with its reason.

Amounts and token ids, decimal or hex, become three limbs of 26 digits, exactly or not at all.
"""

from __future__ import annotations

import pyarrow as pa

from nbext.core.uint256 import LIMB_DIGITS, MAX_UINT256, uint256_of
from nbext.engine.ingest.sources.reading import Opened
from nbext.engine.ingest.stage import Stage
from nbext.errors import IngestError

DECIMAL = "DECIMAL(38,0)"


def is_amount(digits: str) -> str:
    """Return the SQL of whether a text is a whole number from 0 to 2**256 - 1, in decimal digits."""
    return (f"(regexp_full_match({digits}, '[0-9]{{1,78}}') "
            f"AND (length({digits}) < 78 OR {digits} <= '{MAX_UINT256}'))")


def limbs(digits: str) -> tuple[str, str, str]:
    """Return the SQL of the three limbs of a text that is an amount; NULL where a part is not digits."""
    # Texts of up to 26 digits, nearly all of them, are cast once. The cast goes through HUGEINT, because DuckDB
    # parses text as DECIMAL many times slower.
    width = LIMB_DIGITS
    cast = f"TRY_CAST({{}} AS HUGEINT)::{DECIMAL}"
    zero = f"0::{DECIMAL}"
    lo = cast.format(f"CASE WHEN length({digits}) <= {width} THEN {digits} ELSE right({digits}, {width}) END")
    mid = cast.format(f"substr({digits}, greatest(length({digits}) - {2 * width - 1}, 1), "
                      f"least(length({digits}) - {width}, {width}))")
    hi = cast.format(f"left({digits}, length({digits}) - {2 * width})")
    return (f"CASE WHEN length({digits}) > {2 * width} THEN {hi} ELSE {zero} END",
            f"CASE WHEN length({digits}) > {width} THEN {mid} ELSE {zero} END", lo)


def spell_hex(stage: Stage, relation: str, column: str) -> None:
    """Create ``hex_digits``: the decimal digits of each distinct hex text of a column that is a uint256."""
    # By Python's integers, because SQL has none of 256 bits; distinct texts only, because Python reads them one by one.
    stage.run("CREATE OR REPLACE TABLE hex_digits (text VARCHAR, digits VARCHAR)")
    found = stage.connection.cursor().execute(
        f"SELECT DISTINCT {column} AS text FROM {relation} WHERE {column} LIKE '0x%'")
    while texts := [row[0] for row in found.fetchmany(100_000)]:
        read = [(text, number) for text in texts if (number := uint256_of(text)) is not None]
        arriving = pa.table({"text": [text for text, _ in read], "digits": [str(number) for _, number in read]},
                            schema=pa.schema([("text", pa.string()), ("digits", pa.string())]))
        stage.connection.register("arriving_hex", arriving)
        stage.run("INSERT INTO hex_digits SELECT * FROM arriving_hex")
        stage.connection.unregister("arriving_hex")


def decimal(number: int) -> str:
    """Return the SQL of a whole number as a limb's type: compared with another type, a column is cast."""
    return f"{number}::{DECIMAL}"


# Seconds of the year 2200: a later time is in another unit. Ethereum's own years are 1.4 to 7.2e9.
LATEST = 7_258_118_400
REASONS = (
    ("contract IS NULL", "token address is not an address", "contract_text"),
    ("sender IS NULL", "sender is not an address", "sender_text"),
    ("recipient IS NULL", "recipient is not an address", "recipient_text"),
    ("NOT coalesce({amount}, false)", "value is not a whole number from 0 to 2**256-1", "value_text"),
    ("tx IS NULL", "transaction hash is not 0x and 64 hex digits", "tx_text"),
    ("coalesce(log_index, -1) < 0", "log index is not a whole number", "log_text"),
    ("coalesce(block, -1) < 0", "block number is not a whole number", "block_text"),
    ("timed AND (seconds IS NULL OR seconds < 0)", "block timestamp is not a time", "time_text"),
    ("counted AND coalesce(count, -1) < 0", "token value is not a whole number below 2**63", "count_text"),
)
_TEXTS = {"contract_text": "contract", "sender_text": "sender", "recipient_text": "recipient", "value_text": "value",
          "tx_text": "tx", "log_text": "log_index", "block_text": "block", "time_text": "timestamp",
          "count_text": "count"}


# Rows without a log index get made-up ones from here on, above any real one, so that both sorts stay apart.
MADE_UP = 2**32


def begin(stage: Stage) -> None:
    """Create the table that rows of transfers go to."""
    # Packing is named: left to choose, DuckDB tries all ways on each of 10 million rows, as slow as writing them.
    whole, upper, amount = ("USING COMPRESSION " + how for how in ("BITPACKING", "RLE", "UNCOMPRESSED"))

    stage.run(f"""CREATE TABLE incoming (file INTEGER {whole}, row BIGINT {whole}, chain_id BIGINT {whole},
        contract INTEGER {whole}, sender INTEGER {whole}, recipient INTEGER {whole},
        hi {DECIMAL} {upper}, mid {DECIMAL} {upper}, lo {DECIMAL} {amount}, tx UUID {amount}, key_index BIGINT {whole},
        log_index BIGINT {whole}, block BIGINT {whole}, seconds BIGINT {whole}, count BIGINT {whole},
        fault INTEGER {whole})""")


def check_times(stage: Stage, file: Opened) -> None:
    """Refuse a file whose times are not in seconds: its days, and every question by time, would be wrong."""
    if not file.has("timestamp"):
        return
    seconds = file.seconds()
    found = stage.rows(f"SELECT row, {seconds} FROM {file.relation} WHERE {seconds} > {LATEST} ORDER BY row LIMIT 1")
    if found:
        row, value = found[0]
        raise IngestError(
            f"{file.source.shown}, row {row}: {file.columns['timestamp']} is {value}, after the year 2199. "
            "It looks like milliseconds; times must be seconds since 1970.", path=file.source.name, row=row)


def take(stage: Stage, file: Opened, chain: int) -> None:
    """Add a file's rows; those that cannot be parsed go to ``bad`` with their reason.

    Raises
    ------
    IngestError
        No row can be parsed, or times are in milliseconds.
    """
    check_times(stage, file)
    _insert(stage, file, chain, hexed=file.types["value"] == "BLOB")
    faulty = f"FROM incoming WHERE file = {file.number} AND fault IS NOT NULL"
    if stage.value(f"SELECT count(*) {faulty}") and file.types["value"] == "VARCHAR" and stage.value(
            f"SELECT count(*) FROM {file.relation} SEMI JOIN (SELECT row {faulty}) USING (row) "
            f"WHERE {file.text('value')} LIKE '0x%'"):
        stage.run(f"DELETE FROM incoming WHERE file = {file.number}")
        _insert(stage, file, chain, hexed=True)
    _set_bad_apart(stage, file)


def _insert(stage: Stage, file: Opened, chain: int, *, hexed: bool) -> None:
    join = ""
    digits = "value_text"
    if hexed:
        spell_hex(stage, file.relation, file.text("value"))
        join, digits = "LEFT JOIN hex_digits h ON h.text = value_text", "coalesce(h.digits, value_text)"
    hi, mid, lo = limbs("digits")
    faults = " ".join(f"WHEN {test.format(amount=is_amount('digits'))} THEN {n}"
                      for n, (test, _, _) in enumerate(REASONS))
    stage.run(f"""
        INSERT INTO incoming
        SELECT {file.number}, row, {chain}, contract, sender, recipient, {hi}, {mid}, {lo},
            tx, key_index, log_index, block, seconds, count, CASE {faults} END
        FROM (
            SELECT f.*, c.contract, s.wallet AS sender, r.wallet AS recipient, {digits} AS digits
            FROM ({_texts(file)}) f
            LEFT JOIN contract_map c ON c.address = contract_text AND c.chain_id = {chain}
            LEFT JOIN wallet_map s ON s.spelled = spelling(sender_text)
            LEFT JOIN wallet_map r ON r.spelled = spelling(recipient_text) {join}
        )""")


def _texts(file: Opened) -> str:
    tx, log = file.text("tx"), f"TRY_CAST({file.text('log_index')} AS BIGINT)"
    block = f"TRY_CAST({file.text('block')} AS BIGINT)"
    # 16 bytes of the hash: enough that nobody can forge a twin, in a quarter of the text's space.
    key, key_index = f"CASE WHEN length({tx}) = 66 THEN TRY_CAST(substr({tx}, 3, 32) AS UUID) END", log
    if not file.has("log_index"):
        key, key_index, log = _without_log_index(file)
    where = f"WHERE {file.text('type')} = 'token_transfer'" if file.has("type") else ""
    return f"""
        SELECT row, {file.text('contract')} AS contract_text, {file.text('sender')} AS sender_text,
            {file.text('recipient')} AS recipient_text, {file.text('value')} AS value_text,
            {key} AS tx, {key_index} AS key_index, {log} AS log_index, {block} AS block,
            {str(file.has('timestamp')).lower()} AS timed, {file.seconds()} AS seconds,
            {str(file.has('count')).lower()} AS counted, {file.text('count')} AS count_text,
            TRY_CAST({file.text('count')} AS BIGINT) AS count
        FROM {file.relation} {where}"""


def _without_log_index(file: Opened) -> tuple[str, str, str]:
    """Return the SQL of a key from a row's contents, and of its order: Etherscan's tokentx has no log index."""
    same = ", ".join(file.text(c) for c in ("tx", "contract", "sender", "recipient", "value"))
    tx = file.text("tx")
    # Counted, since one transaction can move the same amount between the same two wallets twice.
    nth = f"row_number() OVER (PARTITION BY {same} ORDER BY row)"
    key = f"CASE WHEN length({tx}) = 66 THEN md5(concat_ws('|', {same}, {nth}))::UUID END"
    place = f"row_number() OVER (PARTITION BY {tx} ORDER BY row)"
    tx_index = f"coalesce(TRY_CAST({file.text('tx_index')} AS BIGINT), 0)"
    return key, "(-1)::BIGINT", f"{MADE_UP} + {tx_index} * 1000000 + {place}"


def _set_bad_apart(stage: Stage, file: Opened) -> None:
    texts = ", ".join(f"{file.text(ours)} AS {alias}" for alias, ours in _TEXTS.items())
    why = " ".join(f"WHEN {n} THEN '{words}'" for n, (_, words, _) in enumerate(REASONS))
    value = " ".join(f"WHEN {n} THEN {column}::VARCHAR" for n, (_, _, column) in enumerate(REASONS))
    count, good = stage.rows(
        f"SELECT count(fault), count(*) - count(fault) FROM incoming WHERE file = {file.number}")[0]
    if not count:
        return
    stage.run(f"""
        INSERT INTO bad SELECT {file.number}, i.row, CASE i.fault {why} END, left(CASE i.fault {value} END, 200)
        FROM incoming i JOIN (SELECT row, {texts} FROM {file.relation}) f ON f.row = i.row
        WHERE i.file = {file.number} AND i.fault IS NOT NULL""")
    if not good:
        refuse_all(stage, file)
    stage.run(f"DELETE FROM incoming WHERE file = {file.number} AND fault IS NOT NULL")


def refuse_all(stage: Stage, file: Opened) -> None:
    """Raise the error of a file without a usable row; it names the first."""
    row, why, value = stage.rows(
        "SELECT row, why, value FROM bad WHERE file = ? ORDER BY row LIMIT 1", [file.number])[0]
    raise IngestError(f"{file.source.shown}, row {row}: {why}: {str(value)[:80]!r}. No row of the file is usable.",
                      path=file.source.name, row=row)


def save(stage: Stage) -> None:
    """Fill ``out.transfers``, sorted by contract and place; a transfer that names no count moves one token."""
    stage.run(f"""
        INSERT INTO out.transfers
        SELECT contract, block, log_index, sender, recipient, hi, mid, lo,
            CASE standard WHEN 'ERC721' THEN 1 WHEN 'ERC1155' THEN count END
        FROM arrived JOIN standards USING (contract)
        ORDER BY contract, {moment(stage)}, {pair('sender', 'recipient')}""")


def moment(stage: Stage) -> str:
    """Return the SQL to order one contract's logs by: one integer wherever block and log index fit in one."""
    # DuckDB sorts by one 64-bit key in two thirds of the time that it takes for two.
    tables = ("incoming", *(["prev.main.transfers"] if stage.previous else []))
    greatest = [stage.rows(f"SELECT coalesce(max(block), 0), coalesce(max(log_index), 0) FROM {t}")[0] for t in tables]
    fits = all(block < 2**29 and log_index < 2**33 for block, log_index in greatest)
    return f"(block * {2**33} + log_index)" if fits else "block, log_index"


def pair(first: str, second: str) -> str:
    """Return the SQL of two ranks as one key that orders by the first, then by the second."""
    return f"({first}::BIGINT * {2**32} + {second})"
