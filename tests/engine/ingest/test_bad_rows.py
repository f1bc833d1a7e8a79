"""What cannot be read is refused with its file and row, and nothing of it is in the data."""

from __future__ import annotations

import gzip
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbext.engine import storage
from nbext.errors import IngestError
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, take, wallet
from tests.engine.ingest.replay import tokens


@pytest.fixture
def good(tmp_path, log):
    """A file of two good rows, and its logs."""
    logs = [log(0, 1, 10**20), log(1, 2, 10**19)]
    return write_parquet(tmp_path / "good.parquet", logs), logs


def only_the_good_file_is_there(data, logs):
    with Tables(data) as tables:
        assert tables.balances() == tokens(logs).balances
        assert len(tables.rows("SELECT * FROM wallets")) == 3


def footerless(path, log):
    whole = write_parquet(path, [log()]).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def cut_archive(path, log):
    plain = write_csv(path, [log(sender=n) for n in range(2_000)]).read_bytes()
    packed = gzip.compress(plain)
    path.write_bytes(packed[: len(packed) // 2])


def broken_pages(path, log):
    whole = bytearray(
        write_parquet(path, [log(value=10**20 + n) for n in range(20_000)]).read_bytes()
    )
    middle = len(whole) // 2
    whole[middle : middle + 2_000] = bytes(2_000)
    path.write_bytes(whole)


DAMAGED = [
    ("footer.parquet", footerless, "the file cannot be read"),
    ("pages.parquet", broken_pages, "the file cannot be read|can be read"),
    ("cut.csv.gz", cut_archive, "the file cannot be read"),
    (
        "other.csv",
        lambda path, log: path.write_text("a,b\n1,2\n"),
        r'no known format has any of these columns: a, b\. Transfers, for one, need "from" and "to" and "amount" and "',
    ),
    (
        "near.csv",
        lambda path, log: path.write_text("contract,from,to,when\n1,2,3,4\n"),
        r"no known format has these columns: contract, from, to, when\. The nearest is \S.*, which also "
        r'needs ".*`nbext',
    ),
    (
        "words.csv",
        lambda path, log: path.write_text(f"{'0x' + 'ab' * 20},12.5,UNI\n0x,1,DAI\n"),
        r"the file has no header: its first line is 0x(ab){20}, 12\.5, UNI\. Write the columns' names",
    ),
    (
        "semicolons.csv",
        lambda path, log: path.write_text("address;balance\n1;2\n"),
        r"its columns are separated by semicolons\. nbext reads CSV with commas\.",
    ),
    (
        "spaces.csv",
        lambda path, log: path.write_text("address, balance\n1, 2\n"),
        r"there are spaces around the names of its columns, address,  balance\. Write them, and the rows, without\.",
    ),
    (
        "twice.csv",
        lambda path, log: path.write_text("address,balance,balance\n1,2,3\n"),
        r"columns 'balance' and 'balance' could each be its balance\. Rename all but one\.",
    ),
    (
        "case.csv",
        lambda path, log: path.write_text("Address,Balance,balance\n1,2,3\n"),
        r"columns 'Balance' and 'balance' could each be its balance\. Rename all but one\.",
    ),
    (
        "contract-and-owner.csv",
        lambda path, log: path.write_text("address,owner,token_id\n1,2,3\n"),
        r"columns 'address' and 'owner' could each be its address\. Rename all but one\.",
    ),
    (
        "transfer-and-transaction.csv",
        lambda path, log: path.write_text("hash,block,from,to,sender,amount\n1,2,3,4,5,6\n"),
        r"columns 'from' and 'sender' could each be its sender\. Rename all but one\.",
    ),
    (
        "texts.json",
        lambda path, log: path.write_text('["a", "b"]'),
        r"its rows are no JSON objects\.",
    ),
    (
        "headerless.csv",
        lambda path, log: path.write_text(f"{'0x' + 'ab' * 20},12.5,2024-01-31 00:00:00\n0x,1,2\n"),
        r"the file has no header: its first line is 0x(ab){20}, 12\.5, 2024-01-31 00:00:00\. Write the columns' names",
    ),
    (
        "other.parquet",
        lambda path, log: pq.write_table(pa.table({"x": [1]}), path),
        r"no known format has any of these columns: x\.",
    ),
    (
        "page.csv",
        lambda path, log: path.write_text("<html><body>404</body></html>\n"),
        "no known format has any of these columns",
    ),
    (
        "list.json",
        lambda path, log: path.write_text('{"tokens": 5}'),
        "no known format has any of these columns: tokens",
    ),
    ("list2.json", lambda path, log: path.write_text('{"tokens": ['), "the file cannot be read"),
    ("deep.json", lambda path, log: path.write_text("[" * 100_000), "the file cannot be read"),
    (
        "commas.csv",
        lambda path, log: path.write_text(
            write_csv(path, [log(), log(0, 2)])
            .read_text()
            .replace("\n", ",\n")
            .replace(",\n", "\n", 1)
        ),
        r"row 1: 8 fields instead of 7\. No row of the file is usable\.$",
    ),
    (
        "comma.csv",
        lambda path, log: path.write_text(f"address,balance\n{wallet(1)},5,\n"),
        r"row 1: 3 fields instead of 2\. No row of the file is usable\.$",
    ),
    (
        "times.csv",
        lambda path, log: path.write_text("number,timestamp\n5,1700000000,\n"),
        r"row 1: 3 fields instead of 2\. No row of the file is usable\.$",
    ),
    (
        "tokens.csv",
        lambda path, log: path.write_text("address,symbol,name,decimals\nUNI,UNI,Uniswap,18\n"),
        r"row 1: not an address: 'UNI'\. No row of the file is usable\.$",
    ),
    (
        "floats.parquet",
        lambda path, log: write_parquet(path, [log(sender=77)], value=[1.5]),
        "column 'value' holds floating-point numbers",
    ),
    (
        "amounts.parquet",
        lambda path, log: pq.write_table(
            pa.table(
                {
                    "from": [wallet(77)],
                    "to": [wallet(1)],
                    "amount": [1234567.1234567891],
                    "block": [1],
                    "hash": ["0x" + "1" * 64],
                    "contract": [wallet(1000)],
                }
            ),
            path,
        ),
        "column 'amount' holds floating-point numbers",
    ),
    (
        "types.parquet",
        lambda path, log: write_parquet(path, [log(sender=77)], log_index=[[1]]),
        "row 1: log index is not a whole number",
    ),
    (
        "latin.csv",
        lambda path, log: path.write_bytes(
            write_csv(path, [log()]).read_bytes() + b"\xff\xfe,,,,,,\n"
        ),
        "the file cannot be read",
    ),
]


def test_a_file_that_cannot_be_opened_refuses_a_run_that_says_what_the_data_has_every_transfer_of(
    data, tmp_path, log
):
    """A fetch: what is told to be complete would have a hole that nobody knows of."""
    whole = write_parquet(tmp_path / "a.parquet", [log(0, 1, 5)])
    broken = tmp_path / "b.parquet"
    broken.write_bytes(whole.read_bytes()[:-9])
    with pytest.raises(IngestError, match=r"b\.parquet"):
        take(data, whole, broken, covered={wallet(1000): [(0, 100)]})
    assert storage.current_generation(data) is None
    assert [str(one) for one in take(data, whole, broken).refused] != []


def test_files_that_cannot_be_read_are_named_and_leave_nothing(data, tmp_path, good, log):
    for name, make, _ in DAMAGED:
        make(tmp_path / name, log)
    report = take(data, *(tmp_path / name for name, *_ in DAMAGED), good[0])
    refused = {error.path: str(error) for error in report.refused}
    assert sorted(refused) == sorted(str(tmp_path / name) for name, *_ in DAMAGED)
    for name, _, says in DAMAGED:
        assert re.search(says, refused[str(tmp_path / name)])
    only_the_good_file_is_there(data, good[1])


def test_when_no_file_can_be_used_nothing_is_made(data, tmp_path):
    (tmp_path / "page.csv").write_text("<html><body>404</body></html>\n")
    with pytest.raises(IngestError, match="no known format"):
        take(data, tmp_path / "page.csv")
    assert storage.current_generation(data) is None


# What an export of a day without a transfer is.
QUIET = {
    "empty.csv": b"",
    "empty.parquet": b"",
    "comment.csv": b"# nothing today\n",
    "answer.json": b'{"status": "0", "message": "None found", "result": []}',
}


def test_a_file_without_rows_is_a_quiet_day_and_takes_nothing_away(data, tmp_path, log, good):
    for name, content in QUIET.items():
        (tmp_path / name).write_bytes(content)
    quiet = [*(tmp_path / name for name in QUIET), write_csv(tmp_path / "header.csv", [])]
    lines = sorted(f"{path}: it has no rows" for path in quiet)
    assert take(data, *quiet).lines() == [*lines, "No new rows.", "There is no data."]
    assert storage.current_generation(data) is None
    assert [line for line in take(data, good[0], *quiet).lines() if "no rows" in line] == lines
    only_the_good_file_is_there(data, good[1])
    # What a file of that name gave before stays.
    path = write_csv(tmp_path / "day.csv", [log(0, 8, 5)])
    take(data, path)
    with Tables(data) as tables:
        before = tables.balances()
    assert take(data, write_csv(path, [])).lines()[0] == f"{path}: it has no rows"
    with Tables(data) as tables:
        assert tables.balances() == before
    with pytest.raises(IngestError, match=r"day.csv: the file has no rows\."):
        take(data, path, replace_from=5)


BAD_VALUES = {
    "1e18": None,
    "-1": None,
    # As BigQuery writes a NUMERIC, also a whole one.
    "1.0": 1,
    "100000000000000000000.000000000": 10**20,
    "0.000": 0,
    "1.5": None,
    "": None,
    " 1": None,
    "1_000": None,
    "0x": None,
    "0xzz": None,
    str(2**256): None,
    hex(2**256): None,
    "٣": None,
    hex(2**256 - 1): 2**256 - 1,
    "0x0a": 10,
    "007": 7,
    str(2**256 - 1): 2**256 - 1,
    "0": 0,
    "0x" + "0" * 64: 0,
}


def test_each_value_is_read_exactly_or_refused_with_its_row(data, tmp_path, log, contracts_file):
    rows = [log(0, 10 + n, 0) for n in range(len(BAD_VALUES))]
    report = take(
        data, write_parquet(tmp_path / "t.parquet", rows, value=list(BAD_VALUES)), contracts_file
    )
    refused = [(n, text) for n, (text, value) in enumerate(BAD_VALUES.items(), 1) if value is None]
    with Tables(data) as tables:
        held = {
            holder: amount for (_, holder), amount in tables.balances().items() if int(holder, 16)
        }
        wallets = {address for (address,) in tables.rows("SELECT address FROM wallets")}
    assert held == {wallet(10 + n): v for n, v in enumerate(BAD_VALUES.values()) if v}
    assert report.bad_rows == len(refused)
    listed = (data / "bad-rows.csv").read_text("utf-8").splitlines()[1:]
    assert [int(line.split(",")[1]) for line in listed] == [n for n, _ in refused]
    assert wallets == {wallet(0)} | {
        wallet(10 + n) for n, v in enumerate(BAD_VALUES.values()) if v is not None
    }


BAD_FIELDS = [
    ("from_address", "0x12", "sender is not an address"),
    ("to_address", None, "recipient is not an address"),
    ("token_address", "0x" + "g" * 40, "token address is not an address"),
    ("transaction_hash", "0x12", "transaction hash is not 0x and 64 hex digits"),
    ("transaction_hash", "0x" + "z" * 64, "transaction hash is not 0x and 64 hex digits"),
    ("log_index", -1, "log index is not a whole number"),
    ("block_number", None, "block number is not a whole number"),
]


def test_a_bad_field_is_named_with_file_and_row(data, tmp_path, log):
    logs = [log(0, n, 10**20) for n in range(1, len(BAD_FIELDS) + 2)]
    columns = {column: [getattr(log, column) for log in logs] for column, *_ in BAD_FIELDS}
    for row, (column, value, _) in enumerate(BAD_FIELDS, 1):
        columns[column][row] = value
    path = write_parquet(tmp_path / "t.parquet", logs, **columns)
    report = take(data, path)
    assert [(b.path, b.row, b.why) for b in report.bad] == [
        (str(path), row, why) for row, (_, _, why) in enumerate(BAD_FIELDS, 2)
    ]
    with Tables(data) as tables:
        assert tables.balances() == tokens(logs[:1]).balances
        assert len(tables.rows("SELECT * FROM wallets")) == 2


# A block number as a file may write it, and the block that it is.
BLOCKS = {
    "100": 100,
    "100.0": 100,
    # A spreadsheet's, which has lost digits.
    "1.01e2": None,
    "1E2": None,
    "0x6e": 110,
    "100.5": None,
    "1.5e0": None,
    "15e-1": None,
    "": None,
}


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_a_number_with_a_fraction_is_a_bad_row_and_never_rounded(data, tmp_path, log, write):
    rows = [log(0, 10 + n, 10**20) for n in range(len(BLOCKS))]
    if write is write_csv:
        path = write(
            tmp_path / "t.csv",
            [one._replace(block_number=text) for one, text in zip(rows, BLOCKS, strict=True)],
        )
    else:
        path = write(tmp_path / "t.parquet", rows, block_number=list(BLOCKS))
    report = take(data, path)
    assert [(b.row, b.why) for b in report.bad] == [
        (n, "block number is not a whole number")
        for n, block in enumerate(BLOCKS.values(), 1)
        if block is None
    ]
    with Tables(data) as tables:
        blocks = sorted(block for (block,) in tables.rows("SELECT block FROM transfers"))
    assert blocks == sorted(block for block in BLOCKS.values() if block is not None)


@pytest.mark.parametrize("written", [float, str])
def test_a_float_column_of_blocks_is_read_where_it_is_whole_and_seconds_lose_their_fraction(
    data, tmp_path, log, written
):
    rows = [log(0, 10 + n, 10**20) for n in range(3)]
    times = [1_600_000_000.75, 1_600_000_012.0, 1_600_000_024.0]
    report = take(
        data,
        write_parquet(
            tmp_path / "t.parquet",
            rows,
            block_number=[100.0, 101.5, 102.0],
            block_timestamp=[written(time) for time in times],
        ),
    )
    assert [(b.row, b.why) for b in report.bad] == [(2, "block number is not a whole number")]
    with Tables(data) as tables:
        times = sorted(tables.rows("SELECT block, timestamp FROM blocks"))
    assert times == [(100, 1_600_000_000), (102, 1_600_000_024)]


def test_ragged_rows_of_a_csv_are_counted_with_their_rows(data, tmp_path, log):
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 10**20), log(0, 2, 10**20)])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1], "0x1,2", lines[2]]) + "\n")
    report = take(data, path)
    assert (report.rows, report.new) == (3, 2)
    assert [(b.row, b.why) for b in report.bad] == [(2, "2 fields instead of 7")]


# Milliseconds; a day, a year and a spreadsheet's date as numbers; years that no block is of.
@pytest.mark.parametrize(
    ("times", "shown"),
    [
        ([1_600_000_000, 1_600_000_012_000], "1600000012000"),
        ([0, 20250131], "20250131"),
        (["0", "2025"], "2025"),
        ([0.0, 45000.5], "45000.5"),
        (["2024-01-31", "2300-01-01"], "2300-01-01"),
        (["2024-01-31", "1970-01-01 00:00:02"], "1970-01-01 00:00:02"),
    ],
)
def test_times_that_no_block_has_are_shown_and_refused(data, tmp_path, log, times, shown):
    path = write_parquet(tmp_path / "t.parquet", [log(), log()], block_timestamp=times)
    with pytest.raises(IngestError) as caught:
        take(data, path)
    assert str(caught.value) == (
        f"{path}, row 2: block_timestamp is '{shown}', which is no time from 2001 to 2199: write seconds since 1970, "
        "or texts such as 2025-01-31."
    )
    assert (caught.value.path, caught.value.row) == (str(path), 2)


def test_addresses_in_any_case_are_one_wallet(data, tmp_path, log):
    mixed = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
    rows = [log(0, 1, 10**20), log(0, 1, 10**20), log(0, 1, 10**20)]
    take(
        data,
        write_parquet(
            tmp_path / "t.parquet",
            rows,
            to_address=[mixed, mixed.lower(), "0x" + mixed[2:].upper()],
            token_address=[mixed, mixed.lower(), mixed],
        ),
    )
    with Tables(data) as tables:
        assert tables.balances()[mixed.lower(), mixed.lower()] == 3 * 10**20


def test_a_file_that_lacks_a_column_of_a_known_format_is_told_which(data, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("blockNumber,timeStamp,from,to,contractAddress,value\n1,2,3,4,5,6\n")
    with pytest.raises(
        IngestError, match=r'looks like tokentx \(Etherscan\), but has no column "hash"\. Found: bl'
    ):
        take(data, path)


def test_of_files_that_are_all_refused_the_error_is_that_of_the_first_whenever_it_is_found_out(
    data, tmp_path, log
):
    # The first is refused when it is opened, the second only once its rows are read.
    for name, logs in (("a.csv", []), ("b.csv", [log(block="")])):
        write_csv(tmp_path / name, logs)
    (tmp_path / "a.csv").write_text("one;two\n1;2\n")
    with pytest.raises(IngestError, match=r"a\.csv: its columns are separated by semicolons"):
        take(data, tmp_path / "a.csv", tmp_path / "b.csv")


WORDS = ([True, False, None], ["TRUE", "false", ""], [1.0, 0.0, None])


@pytest.mark.parametrize("words", WORDS)
def test_a_log_that_a_node_took_back_is_a_bad_row_and_its_block_has_the_hash_of_the_others(
    data, tmp_path, log, words
):
    logs = [log(0, 9, 7), log(0, 1, 10**20), log(1, 2, 10**19)]
    hashes = [f"0x{n:064x}" for n in (1, 2, 2)]
    path = write_parquet(tmp_path / "logs", logs, removed=words, block_hash=hashes)
    report = take(data, path)
    assert [(bad.row, bad.why, bad.value.lower()) for bad in report.bad] == [
        (1, "log was removed by a reorganisation", str(words[0]).lower().removesuffix(".0"))
    ]
    with Tables(data) as tables:
        assert tables.balances() == tokens(logs[1:]).balances
        assert tables.rows("SELECT DISTINCT hash FROM blocks") == [(hashes[1],)]
    with pytest.raises(IngestError, match=r"row 1: log was removed.*No row of the file is usable"):
        take(tmp_path / "none", write_parquet(tmp_path / "gone", logs[:1], removed=words[:1]))
