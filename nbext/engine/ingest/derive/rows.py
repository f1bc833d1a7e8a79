"""Parse rows of text into rows of integers; a row that cannot be parsed goes to ``bad`` with its reason.

Amounts and token ids, decimal or hex, become three limbs of 26 digits, exactly or not at all.
Addresses become ranks: each distinct spelling is looked at once, and rows are joined by it.
"""

from __future__ import annotations

from uuid import UUID

from nbext.core.addresses import ZERO_ADDRESS
from nbext.core.uint256 import LIMB_DIGITS, uint256_of
from nbext.core.untrusted_text import quoted
from nbext.engine.ingest.derive.facts import ADDRESS, is_uint256
from nbext.engine.ingest.reading import FileTable
from nbext.engine.ingest.stage import Stage

DECIMAL = "DECIMAL(38,0)"
# The digits of an amount in normal form that is not negative. As text all three: beside texts Spark makes a DOUBLE of a
# number that may be missing.
SPELLED = (
    "coalesce(nullif(ltrim(concat(hi::VARCHAR, lpad(mid::VARCHAR, 26, '0'), lpad(lo::VARCHAR, 26, '0')), '0'), ''), "
    "'0')"
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

    def read(text: str) -> tuple[str, str] | None:
        return None if (number := uint256_of(text)) is None else (text, str(number))

    stage.spell(
        "hex_digits",
        ("text", "digits"),
        f"SELECT DISTINCT {column} AS text FROM {relation} WHERE {column} LIKE '0x%'",
        read,
    )


def decimal(number: int) -> str:
    """Return the SQL of a whole number as a limb's type: compared with another type, a column is cast."""
    return f"{number}::{DECIMAL}"


# Seconds of 2001 and of 2200. No chain is older: a number before is a year, a day (20250131) or a spreadsheet's date
# (45000), and one after is in milliseconds. Only a first block has the time 0.
EARLIEST, LATEST = 978_307_200, 7_258_118_400
# Why a row cannot be stored: the SQL of it, the words for it, and the column that is shown.
REASONS = (
    ("removed", "log was removed by a reorganisation", "removed"),
    ("contract IS NULL", "token address is not an address", "contract"),
    ("sender IS NULL", "sender is not an address", "sender"),
    ("recipient IS NULL", "recipient is not an address", "recipient"),
    (f"NOT {is_uint256('digits')}", "value is not a whole number from 0 to 2**256-1", "value"),
    ("tx IS NULL OR low IS NULL", "transaction hash is not 0x and 64 hex digits", "tx"),
    ("coalesce(log_index, -1) < 0", "log index is not a whole number", "log_index"),
    (
        "timed AND (seconds IS NULL OR seconds < 0)",
        "block timestamp is not a time; if it is written in another way, add --date-format",
        "timestamp",
    ),
    ("coalesce(block, -1) < 0", "block number is not a whole number", "block"),
    (
        "counted AND coalesce(count, -1) < 0",
        "token value is not a whole number below 2**63",
        "count",
    ),
)


# Of a row's number: a batch is several rows, and all after the first are this many further on, and again.
ELEMENT = 2**40
# Rows without a log index get made-up ones from here on, above any real one, so that both sorts stay apart.
MADE_UP = 2**32


def create_incoming(stage: Stage) -> None:
    """Create the tables that rows of transfers go to, and the addresses as they are spelled there."""
    stage.run("CREATE TABLE spelled (address VARCHAR)")
    stage.run("CREATE TABLE spelled_contracts (chain_id BIGINT, address VARCHAR)")
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


def check_columns(stage: Stage, file: FileTable, *columns: str) -> None:
    """Refuse a file by its first row that has in a column, of these or of any, what would be read as something else."""
    seconds = file.seconds()
    refused = {
        "timestamp": (
            f"{seconds} BETWEEN 1 AND {EARLIEST - 1} OR {seconds} >= {LATEST}",
            ", which is no time from 2001 to 2199: write seconds since 1970, or texts such as 2025-01-31.",
        ),
        # An NFT's value, 1, would be its id.
        "other_id": (
            f"{file.text('other_id')} <> ''",
            ", and no column says whether it or the amount counts. Leave out the one that does not, or add "
            "erc_standard as in token_transfers with token ids: `nbext ingest --help` lists all formats.",
        ),
        # They would count as holders of one.
        "held": (
            f"{file.text('held')} <> '' AND {file.whole('held')} IS DISTINCT FROM 1",
            ". Of a snapshot by token id, nbext reads holders of one each: ingest the transfers of an ERC1155, or "
            "leave the column out if it is no count.",
        ),
    }
    for column in columns or refused:
        test, says = refused[column]
        for row, value in stage.rows(
            f"SELECT row, {file.text(column)} FROM {file.relation} WHERE {test} ORDER BY row LIMIT 1"
        ):
            raise file.source.fault(f"{file.columns[column]} is {quoted(value)}{says}", row=row)


def take_rows(stage: Stage, file: FileTable) -> None:
    """Add a file's rows; those that cannot be parsed go to ``bad`` with their reason.

    Raises
    ------
    IngestError
        No row can be parsed.
    """
    if not file.has("block"):
        stage.run("INSERT INTO odd VALUES (?, 'unnumbered', ?)", [file.number, file.rows])
    spell_hex(stage, file.relation, file.text("value"))
    stage.run(
        "INSERT INTO incoming "
        + parsed_rows(
            file,
            f"""
            SELECT f.*, c.contract, s.wallet AS sender, r.wallet AS recipient, coalesce(h.digits, value_text) AS digits
            FROM ({row_texts(stage, file)}) f
            LEFT JOIN contract_map c ON c.address = contract_text AND c.chain_id = {file.chain}
            LEFT JOIN wallet_map s ON s.spelled = spelling(sender_text)
            LEFT JOIN wallet_map r ON r.spelled = spelling(recipient_text)
            LEFT JOIN hex_digits h ON h.text = value_text""",
        )
    )
    set_bad_apart(stage, file)


def parsed_rows(file: FileTable, named: str) -> str:
    """Return the SQL of rows as ``incoming`` has them, of the SQL of `texts` with who took part and ``digits``."""
    hi, mid, lo = limbs("digits")
    faults = " ".join(f"WHEN {test} THEN {n}" for n, (test, _, _) in enumerate(REASONS))
    return f"""
        SELECT {file.number} AS file, row, {file.chain} AS chain_id, contract, sender, recipient,
            {hi} AS hi, {mid} AS mid, {lo} AS lo, tx, low, key_index, log_index, block, seconds, count,
            CASE {faults} END AS fault
        FROM ({named})"""


def row_texts(stage: Stage, file: FileTable) -> str:
    """Return the SQL of a file's rows: what is text as it is written, numbers parsed, NULL where that fails."""
    tx, log = file.text("tx"), file.whole("log_index")
    # All 32 bytes: test chains number their hashes, which then differ in the last bytes only.
    key, low = (
        f"CASE WHEN length({tx}) = 66 THEN TRY(unhex(substr({tx}, {start}, 32))::UUID) END"
        for start in (3, 35)
    )
    key_index = log
    if not file.has("log_index"):
        key, low, key_index, log = _without_log_index(stage, file)
    elif file.has("count"):
        # Of an ERC1155's row that of its token id, as a log can move many.
        own = f"CASE WHEN length({tx}) = 66 THEN md5(lower({tx}) || '|' || {file.text('value')})::UUID END"
        others = file.has("standard") and f"{file.text('standard')} IS DISTINCT FROM 'ERC1155'"
        key = f"CASE WHEN {others or 'false'} THEN {key} ELSE {own} END"
    where = f"WHERE {file.text('type')} = 'token_transfer'" if file.has("type") else ""
    return f"""
        SELECT row, {file.text("contract")} AS contract_text, {file.text("sender")} AS sender_text,
            {file.text("recipient")} AS recipient_text, {file.text("value")} AS value_text,
            {key} AS tx, {low} AS low, {key_index} AS key_index, {log} AS log_index, {file.block} AS block,
            {str(file.has("timestamp")).lower()} AS timed, {file.seconds()} AS seconds,
            {str(file.has("count")).lower()} AS counted, {file.text("count")} AS count_text,
            {file.whole("count")} AS count, {file.removed} AS removed
        FROM {file.relation} {where}"""


def _without_log_index(stage: Stage, file: FileTable) -> tuple[str, str, str, str]:
    """Return the SQL of a key from a row's contents, and of its order: Etherscan's files have no log index."""
    same = ", ".join(
        f"lower({file.text(c)})" for c in ("tx", "contract", "sender", "recipient", "value")
    )
    if file.has("count"):  # of an ERC721 some files say that one was sent, and others say nothing
        many = f"{file.text('standard')} = 'ERC1155'" if file.has("standard") else "true"
        same += f", CASE WHEN {many} THEN {file.whole('count')} END"
    tx = file.text("tx")
    stage.run(f"""
        INSERT INTO odd SELECT {file.number}, unnest(['unindexed', 'unindexed_alike']),
            unnest([count(*), count(*) - count(DISTINCT ({same}))]) FROM {file.relation}""")
    # Counted, since one transaction can move the same amount between the same two wallets twice.
    nth = f"row_number() OVER (PARTITION BY {same} ORDER BY row)"
    key = f"CASE WHEN length({tx}) = 66 THEN md5(concat_ws('|', {same}, {nth}))::UUID END"
    # The order of a block's logs is the file's, which may begin with the newest.
    block = file.block
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


def set_bad_apart(stage: Stage, file: FileTable, table: str = "incoming") -> None:
    """Move a file's rows that have a fault from a table to ``bad``; refuse the file if no row is left."""
    written = ", ".join(f"{file.text(ours)} AS {ours}" for _, _, ours in REASONS)
    why = " ".join(f"WHEN {n} THEN '{words}'" for n, (_, words, _) in enumerate(REASONS))
    value = " ".join(f"WHEN {n} THEN f.{ours}" for n, (_, _, ours) in enumerate(REASONS))
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


def refuse_all(stage: Stage, file: FileTable, otherwise: str = "") -> None:
    """Raise the error of a file without a usable row; it names the first bad one, or says ``otherwise``."""
    bad = stage.rows(
        "SELECT row, why, value FROM bad WHERE file = ? ORDER BY row LIMIT 1", [file.number]
    )
    row, why, value = bad[0] if bad else (1, otherwise, None)
    # A row of too few or too many fields has no value to show.
    shown = "" if value is None else f": {str(value)[:80]!r}"
    raise file.source.fault(f"{why}{shown}. No row of the file is usable.", row=row)


def save_transfers(stage: Stage) -> None:
    """Fill ``out.transfers``, sorted by contract and place; a transfer that names no count moves one token."""
    stage.run(f"""
        INSERT INTO out.transfers
        SELECT contract, block, log_index, sender, recipient, hi, mid, lo,
            CASE standard WHEN 'ERC721' THEN 1 WHEN 'ERC1155' THEN coalesce(given, 1) END, source, row, given
        FROM arrived JOIN standards USING (contract)
        ORDER BY contract, {log_order(stage)}, {pair("sender", "recipient")}""")


def log_order(stage: Stage) -> str:
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


def collect_addresses(stage: Stage, file: FileTable) -> None:
    """Add the addresses of a transfers file, as they are spelled there."""
    sides = " UNION ALL ".join(
        f"SELECT {file.text(side)} AS address FROM {file.relation}"
        for side in ("sender", "recipient")
    )
    # The first file, often the only one, is spared the join with nothing.
    met = "ANTI JOIN spelled USING (address)" if stage.value("SELECT count(*) FROM spelled") else ""
    stage.run(f"INSERT INTO spelled SELECT DISTINCT address FROM ({sides}) {met}")
    stage.run(
        f"INSERT INTO spelled_contracts SELECT DISTINCT {file.chain}, {file.text('contract')} FROM {file.relation}"
    )


def rank_addresses(stage: Stage) -> None:
    """Create ``wallets`` and ``contract_ranks`` (rank and address) and the maps from a spelling to its rank."""
    valid = ADDRESS.format("address")
    before = "UNION SELECT address FROM prev.main.wallets" if stage.previous else ""
    # The spellings are distinct already: only addresses from elsewhere need a union.
    address = "address" if _all_lower(stage) else "DISTINCT lower(address) AS address"
    met = f"SELECT {address} FROM spelled WHERE {valid}"
    if stage.previous or stage.value("SELECT count(*) FROM openings"):
        met = f"({met}) UNION (SELECT address FROM openings {before})"
    stage.run(f"CREATE TABLE wallets AS SELECT address FROM ({met}) ORDER BY address")
    before = "UNION SELECT chain_id, address FROM prev.main.contracts" if stage.previous else ""
    stage.run(f"""
        CREATE TABLE contract_ranks AS SELECT chain_id, address FROM (
            SELECT chain_id, lower(address) AS address FROM spelled_contracts WHERE {valid}
            UNION SELECT chain_id, contract FROM openings UNION SELECT chain_id, address FROM known {before}
        ) ORDER BY 1, 2""")
    map_wallets(stage, "wallets")
    map_contracts(stage)
    map_previous(stage)
    stage.drop("spelled", "spelled_contracts")


def map_contracts(stage: Stage) -> None:
    """Create ``contract_map``: the number of each spelling of a contract's address."""
    stage.run(
        "CREATE TABLE contract_map AS SELECT DISTINCT s.chain_id, s.address, c.rowid::INTEGER AS contract "
        "FROM spelled_contracts s JOIN contract_ranks c "
        "ON c.chain_id = s.chain_id AND c.address = lower(s.address)"
    )


def map_wallets(stage: Stage, numbered: str) -> None:
    """Create ``wallet_map``: the number of each spelling of an address, of a table with that number as rowid."""
    # A row's place in a sorted table is its rank, which is cheaper than a window over all addresses. Spellings are
    # looked up by their 64-bit hashes, in a quarter of the memory and of the time, unless two have the same hash.
    distinct = stage.value("SELECT count(DISTINCT hash(address)) = count(*) FROM spelled")
    stage.run(f"CREATE MACRO spelling(address) AS {'hash(address)' if distinct else 'address'}")
    if _all_lower(stage):
        stage.run(
            "CREATE TABLE wallet_map AS SELECT spelling(address) AS spelled, rowid::INTEGER AS wallet "
            f"FROM {numbered}"
        )
    else:
        stage.run(
            "CREATE TABLE wallet_map AS SELECT spelling(s.address) AS spelled, w.rowid::INTEGER AS wallet "
            f"FROM spelled s JOIN {numbered} w ON lower(s.address) = w.address"
        )


def _all_lower(stage: Stage) -> bool:
    return bool(
        stage.value("SELECT coalesce(bool_and(address = lower(address)), true) FROM spelled")
    )


def zero_rank(stage: Stage) -> int:
    """Return the rank of the zero address, or one that no wallet has where the data does not name it."""
    rank = stage.value("SELECT rowid FROM wallets WHERE address = ?", [ZERO_ADDRESS])
    # -1 is NOBODY, who sends what was there before the data begins; the zero address must not be taken for it.
    return -2 if rank is None else int(rank)


def forget_unused(stage: Stage) -> None:
    """Remove the addresses that only bad rows named from the ranks, so that those rows leave no trace."""
    before = "UNION SELECT address FROM prev.main.wallets" if stage.previous else ""
    used = f"""
        SELECT address FROM wallets w WHERE EXISTS (SELECT 1 FROM incoming WHERE sender = w.rowid)
            OR EXISTS (SELECT 1 FROM incoming WHERE recipient = w.rowid)
        UNION SELECT address FROM openings {before}"""
    wallets = _closed_ranks(stage, "wallets", used, "address")
    before = "UNION SELECT chain_id, address FROM prev.main.contracts" if stage.previous else ""
    used = f"""
        SELECT chain_id, address FROM contract_ranks c WHERE EXISTS (SELECT 1 FROM incoming WHERE contract = c.rowid)
        UNION SELECT chain_id, contract FROM openings UNION SELECT chain_id, address FROM known {before}"""
    contracts = _closed_ranks(stage, "contract_ranks", used, "chain_id, address")
    # Mostly good rows use the bad rows' addresses too, and no rank moves.
    if wallets or contracts:
        stage.run("""
            CREATE OR REPLACE TABLE incoming AS SELECT i.* REPLACE (c.now AS contract, s.now AS sender,
                r.now AS recipient) FROM incoming i
            JOIN contract_ranks_closed c ON c.old = contract JOIN wallets_closed s ON s.old = sender
            JOIN wallets_closed r ON r.old = recipient""")
        map_previous(stage)
    stage.drop("wallets_closed", "contract_ranks_closed")


def _closed_ranks(stage: Stage, table: str, used: str, key: str) -> bool:
    """Rank the used rows of a table again; create the map from old ranks to new, and return whether any moved."""
    stage.run(f"CREATE TABLE kept AS SELECT {key} FROM ({used}) ORDER BY {key}")
    stage.run(
        f"CREATE TABLE {table}_closed AS SELECT t.rowid::INTEGER AS old, k.rowid::INTEGER AS now "
        f"FROM {table} t JOIN kept k USING ({key})"
    )
    moved = stage.value(f"SELECT (SELECT count(*) FROM {table}) > (SELECT count(*) FROM kept)")
    stage.drop(table)
    stage.run(f"ALTER TABLE kept RENAME TO {table}")
    return bool(moved)


def open_snapshots(stage: Stage) -> None:
    """Create ``opened``, the newest snapshots' balances by rank; store all snapshots, and whom they show."""
    stage.run("""
        CREATE TABLE opened AS SELECT c.rowid::INTEGER AS contract, n.block, w.rowid::INTEGER AS wallet,
            o.hi, o.mid, o.lo, o.has_id
        FROM openings o JOIN newest n USING (source, chain_id, contract)
        JOIN contract_ranks c ON c.chain_id = o.chain_id AND c.address = o.contract
        JOIN wallets w ON w.address = o.address""")
    stored, new = "", ""
    if stage.appending:
        stored = "ANTI JOIN prev.main.snapshot_wallets USING (chain_id, wallet, block)"
        new = f"WHERE source >= {stage.first}"
    # Of older snapshots too: a wallet that was seen once stays seen.
    stage.run(f"""
        CREATE TABLE shown AS FROM (
            SELECT DISTINCT o.chain_id, w.rowid::INTEGER AS wallet, p.block
            FROM openings o JOIN placed p USING (source, chain_id, contract) JOIN wallets w USING (address))
        {stored}""")
    stage.run("INSERT INTO out.snapshot_wallets FROM shown ORDER BY chain_id, block, wallet")
    stage.run("CREATE TABLE IF NOT EXISTS out.ingest.openings AS FROM openings LIMIT 0")
    stage.run(f"INSERT INTO out.ingest.openings FROM openings {new} ORDER BY ALL")
    stage.run(
        "CREATE TABLE contract_chain AS SELECT rowid::INTEGER AS contract, chain_id FROM contract_ranks"
    )


def map_previous(stage: Stage) -> None:
    """Create ``wallet_moves`` and ``contract_moves``: this run's ranks of those of the generation before."""
    if stage.previous is None:
        return
    stage.run(
        "CREATE OR REPLACE TABLE wallet_moves AS SELECT p.wallet AS old, w.rowid::INTEGER AS now "
        "FROM prev.main.wallets p JOIN wallets w USING (address)"
    )
    stage.run(
        "CREATE OR REPLACE TABLE contract_moves AS SELECT p.contract AS old, c.rowid::INTEGER AS now "
        "FROM prev.main.contracts p JOIN contract_ranks c USING (chain_id, address)"
    )
