"""Tables of anybody's own, and files as other tools write them: any names, no log index, no block, any dates."""

from __future__ import annotations

import csv
import gzip
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nbext.cli import main
from nbext.engine import storage
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.files import Source
from nbext.engine.ingest.formats import formats, recognise, recognised
from nbext.errors import IngestError
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, take, transaction, wallet

UNI = "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"
# 100.5 UNI are minted at 10:00 UTC, and 1.5 of these are sent on, at 11:30 of the next day.
TIMES = [1622887200, 1622979000]
ROWS = [
    [wallet(0), wallet(1), "100.5", "05/06/2021 10:00", transaction(1)],
    [wallet(1), wallet(2), "1.5", "06/06/2021 11:30", transaction(2)],
]
NAMES = ("src", "dst", "qty", "when", "txid")
OURS = ("from", "to", "amount", "time", "hash")
MAP = ("--map", ",".join(map("=".join, zip(NAMES, OURS, strict=True))))
DAYS_FIRST = ("--date-format", "%d/%m/%Y %H:%M")


def of_uni(*amounts):
    """Return balances of UNI: of wallet 1, 2, ... and what wallet 0 minted."""
    held = {(UNI, wallet(n)): amount for n, amount in enumerate(amounts, 1)}
    return {(UNI, wallet(0)): -sum(amounts), **held}


HELD = of_uni(99 * 10**18, 15 * 10**17)


def table(path, names=NAMES, rows=ROWS):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


@pytest.fixture
def ingest(data, capsys):
    def run(*words, data=data):
        code = main(["ingest", *map(str, words), "--chain", "1", "--data", str(data), "--quiet"])
        said = capsys.readouterr()
        return code, (said.out + said.err).splitlines()

    return run


def balances(data):
    with Tables(data) as tables:
        return tables.balances()


@pytest.mark.slow
def test_five_columns_are_enough_on_whichever_side_of_the_map_they_are(data, tmp_path, ingest):
    path = table(tmp_path / "own.csv")
    turned = ("--map", ",".join(map("=".join, zip(OURS, NAMES, strict=True))))
    for folder, named in (("theirs", MAP), ("ours", turned)):
        code, said = ingest(path, *named, "--token", "uni", *DAYS_FIRST, data=data / folder)
        assert (code, said[:5]) == (
            0,
            [
                f"{path}: a table of transfers, by time, 2 rows, ethereum",
                "2 rows read: 2 ERC20 transfers (1 contract), 2 of them new.",
                "  1 mint (from the zero address)",
                "  2 rows without a log index: identified by their transactions, addresses and amounts; where two "
                "files have equal ones, as many count as one file has",
                "  2 rows without block numbers: their times, in seconds since 1970, are their blocks",
            ],
        )
        with Tables(data / folder) as tables:
            assert tables.balances() == HELD
            assert tables.rows("SELECT block, timestamp FROM blocks ORDER BY 1") == [
                (at, at) for at in TIMES
            ]


def test_a_dry_run_shows_how_the_first_rows_are_read_and_changes_nothing(data, tmp_path, ingest):
    bad = [wallet(0), wallet(3), "2", "31/31/2021 10:00", transaction(3)]
    path = table(tmp_path / "own.csv", rows=[*ROWS, bad])
    holders = table(tmp_path / "holders-uni.csv", ("address", "balance"), [[wallet(5), "7"]])
    code, said = ingest(path, *MAP, "--token", "UNI", *DAYS_FIRST, "--dry-run")
    assert (code, said) == (
        1,
        [
            f"{path}: a table of transfers, by time, 3 rows, ethereum",
            "3 rows read.",
            "1 bad row skipped:",
            f"  {path}, row 3: block timestamp is not a time; if it is written in another way, add --date-format: "
            "'31/31/2021 10:00'",
            f"{path} is read as:",
            f"  {wallet(0)} to {wallet(1)}, 100500000000000000000 of {UNI}, block 1622887200, 2021-06-05 10:00:00 UTC",
            f"  {wallet(1)} to {wallet(2)}, 1500000000000000000 of {UNI}, block 1622979000, 2021-06-06 11:30:00 UTC",
            f"  {wallet(0)} to {wallet(3)}, 2000000000000000000 of {UNI}",
            "Nothing was changed: without --dry-run it is ingested.",
        ],
    )
    assert ingest(holders, "--date", "2021-06-05", "--dry-run") == (
        0,
        [
            f"{holders}: holders, 1 row, ethereum",
            "1 row read.",
            f"{holders} is read as:",
            f"  {wallet(5)} has 7000000000000000000 of {UNI}, 2021-06-05 23:59:59 UTC",
            "Nothing was changed: without --dry-run it is ingested.",
        ],
    )
    assert storage.current_generation(data) is None


def test_a_dry_run_over_stored_data_leaves_it_and_reads_what_is_new(data, tmp_path, log):
    take(data, write_csv(tmp_path / "a.csv", [log(0, 1, 5)]))
    before = storage.current_generation(data).manifest
    report = take(data, write_csv(tmp_path / "b.csv", [log(0, 2, 6, block=120)]), dry_run=True)
    assert len(report.preview) == 2
    assert not report.changed
    assert storage.current_generation(data).manifest == before


@pytest.mark.slow
def test_other_options_of_dates_read_a_file_anew(data, tmp_path, ingest, capsys):
    rows = [[*row[:3], f"2021-06-0{n}", row[4]] for n, row in enumerate(ROWS, 1)]
    path = table(tmp_path / "own.csv", rows=rows)
    words = (path, *MAP, "--token", "UNI")
    for more, days in (((), [1, 2]), (("--date-format", "%Y-%d-%m"), [0, 31])):
        assert ingest(*words, *more)[0] == 0
        with Tables(data) as tables:
            found = [at for (at,) in tables.rows("SELECT timestamp FROM blocks ORDER BY 1")]
        start = 1609891200 if more else 1622419200
        assert found == [start + day * 86_400 for day in days]
    assert ingest(*words, "--date-format", "%Y-%d-%m")[1][:2] == [
        f"{path}: ingested before, skipped",
        "No new rows.",
    ]
    assert main(["sources", "--data", str(data)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"    options: --map {MAP[1]} --date-format '%Y-%d-%m' --token UNI"
    )


def test_a_block_and_a_log_index_count_where_a_table_has_them(data, tmp_path, ingest):
    rows = [[*row, 12_000_000 + n, n] for n, row in enumerate(ROWS)]
    path = table(tmp_path / "own.csv", (*NAMES, "height", "log_index"), rows)
    code, said = ingest(path, MAP[0], f"{MAP[1]},block=height", "--token", "UNI", *DAYS_FIRST)
    assert (code, said[0]) == (0, f"{path}: a table of transfers, 2 rows, ethereum")
    assert not [line for line in said if "without" in line]
    with Tables(data) as tables:
        assert tables.balances() == HELD
        assert tables.rows("SELECT block, timestamp FROM blocks ORDER BY 1") == [
            (12_000_000, TIMES[0]),
            (12_000_001, TIMES[1]),
        ]


@pytest.mark.slow
def test_times_in_the_place_of_blocks_are_never_mixed_with_blocks(data, tmp_path, log, ingest):
    own = (table(tmp_path / "own.csv"), *MAP, "--token", "UNI", *DAYS_FIRST)
    numbered = write_csv(tmp_path / "numbered.csv", [log(0, 1, 5)])
    snapshot = table(tmp_path / "holders-uni.csv", ("address", "balance"), [[wallet(5), "7"]])
    says = (
        ": some files of this chain have block numbers and others only times, which nbext cannot put in order. Map a "
        "column with block numbers (--map theirs=block), or ingest the others into a folder of their own (--data)."
    )
    for first, second in (
        (own, (numbered,)),
        ((numbered,), own),
        (own, (snapshot, "--block", 1_700_000_000)),
    ):
        folder = tmp_path / f"{len(first)}{len(second)}"
        assert ingest(*first, data=folder)[0] == 0
        before = balances(folder)
        code, said = ingest(*second, data=folder)
        assert (code, said[-1].partition(": some")[1:]) == (2, says.partition(": some")[1:])
        assert balances(folder) == before
    # A snapshot of a time is at the last transfer up to then.
    assert ingest(*own)[0] == 0
    assert ingest(snapshot, "--date", "2021-06-06T12:00:00Z")[0] == 0
    assert balances(data) == {(UNI, wallet(5)): 7 * 10**18}


@pytest.mark.slow
def test_the_header_of_an_explorer_is_a_source_of_the_map(data, tmp_path, ingest):
    names = ("Transaction Hash", "Blockno", "UnixTimestamp", "DateTime (UTC)", "From", "To", "Qty")
    rows = [
        [row[4], 12_000_000 + n, TIMES[n], "2021-06-05 10:00:00", row[0], row[1], row[2]]
        for n, row in enumerate(ROWS)
    ]
    path = table(tmp_path / "export.csv", names, rows)
    for folder, named in (
        ("theirs", "Transaction Hash=hash,Blockno=block,UnixTimestamp=time,Qty=amount"),
        ("ours", "hash=Transaction Hash,block=Blockno,time=UnixTimestamp,from=From,amount=Qty"),
        # As its own format calls the amount.
        ("own", "Qty=Quantity"),
    ):
        assert ingest(path, "--map", named, "--token", "UNI", data=data / folder)[0] == 0
        assert balances(data / folder) == HELD


@pytest.mark.parametrize(
    ("named", "alike"),
    [
        ("qty=amount,fee=amount,sender=sender", "columns 'qty' and 'fee' could each be its amount"),
        ("qty=amount", "columns 'from' and 'sender' could each be its sender"),
        ("qty=amount,src=from,sender=from", "columns 'src' and 'sender' could each be its sender"),
        ("qty=amount,sender=sender", None),
        ("qty=amount,from=from", None),
    ],
)
def test_one_of_two_columns_that_could_be_the_same_is_never_chosen_without_a_word(
    tmp_path, named, alike
):
    names = ["src" if "src" in named else "from", "sender", "to", "hash", "block", "qty", "fee"]
    source = Source(tmp_path / "own.csv", 0, 0)
    renamed = dict(pair.split("=") for pair in named.split(","))
    if alike:
        with pytest.raises(IngestError, match=f"{alike}. Rename all but one"):
            recognised(source, names, renamed)
    else:
        _, columns = recognised(source, names, renamed)
        assert columns["sender"] == named.rpartition("=")[2]


def test_a_time_of_day_counts_beside_the_day_alone(data, tmp_path, ingest):
    rows = [
        [row[0], row[1], row[2], n, row[4], "2021-06-05", TIMES[n]] for n, row in enumerate(ROWS)
    ]
    names = ("from", "to", "amount", "block", "hash", "date", "unixtimestamp")
    assert ingest(table(tmp_path / "own.csv", names, rows), "--token", "UNI")[0] == 0
    with Tables(data) as tables:
        assert tables.rows("SELECT timestamp FROM blocks ORDER BY block") == [(at,) for at in TIMES]


@pytest.mark.slow
def test_a_token_is_named_by_a_symbol_that_is_known_or_that_the_data_has(data, tmp_path, ingest):
    path = table(tmp_path / "a-own.csv")
    code, said = ingest(path, *MAP, "--token", "FOO", *DAYS_FIRST)
    assert (code, said) == (
        2,
        [
            f"IngestError: {path}: which token do these wallets hold? No known contract has the symbol 'FOO'. Name the "
            "token: --token FOO=0x..."
        ],
    )
    tokens = table(
        tmp_path / "tokens.csv",
        ("address", "symbol", "name", "decimals"),
        [[wallet(77), "FOO", "Foo", 2]],
    )
    assert ingest(tokens)[0] == 0
    assert ingest(path, *MAP, "--token", "foo", *DAYS_FIRST)[0] == 0
    assert balances(data)[wallet(77), wallet(2)] == 150
    # Of an explorer's export it may be in a file of the same run.
    export = table(
        tmp_path / "export.csv",
        ("Transaction Hash", "Blockno", "UnixTimestamp", "From", "To", "Quantity"),
        [[transaction(9), 12_000_000, TIMES[0], wallet(0), wallet(1), "1.25"]],
    )
    assert ingest(export, tokens, "--token", "FOO", data=data / "two")[0] == 0
    assert balances(data / "two")[wallet(77), wallet(1)] == 125


@pytest.mark.slow
def test_raw_amounts_and_token_ids_have_tables_of_their_own_too(data, tmp_path, ingest):
    raw = table(tmp_path / "raw.csv", rows=[[*row[:2], "5", *row[3:]] for row in ROWS])
    words = (*MAP, "--token", "UNI", *DAYS_FIRST)
    assert ingest(raw, *words, "--unit", "raw", data=data / "raw")[0] == 0
    assert {owner: held for owner, held in balances(data / "raw").items() if held} == {
        (UNI, wallet(0)): -5,
        (UNI, wallet(2)): 5,
    }
    ids = table(tmp_path / "ids.csv", rows=[[*row[:2], "5", *row[3:]] for row in ROWS])
    named = MAP[1].replace("=amount", "=token_id")
    assert ingest(ids, "--map", named, "--token", wallet(9), *DAYS_FIRST, data=data / "ids")[0] == 0
    with Tables(data / "ids") as tables:
        assert tables.owners() == {(wallet(9), 5): wallet(2)}


@pytest.mark.parametrize("tokens", [{}, {"log_index": ["0", "1"]}])
def test_a_token_id_beside_an_amount_is_refused_where_no_column_says_which_counts(
    data, tmp_path, tokens
):
    columns = {
        "from_address": [wallet(0)] * 2,
        "to_address": [wallet(1), wallet(2)],
        "value" if tokens else "amount": ["1", "1"],
        "token_id": ["", "8"],
        "block_number": ["100", "101"],
        "transaction_hash": [transaction(1), transaction(2)],
        "token_address": [wallet(9)] * 2,
        **tokens,
    }
    path = table(tmp_path / "t.csv", tuple(columns), list(zip(*columns.values(), strict=True)))
    options = SnapshotOptions(unit=None if tokens else "raw")
    with pytest.raises(IngestError) as caught:
        take(data, path, options=options)
    assert str(caught.value) == (
        f"{path}, row 2: token_id is '8', and no column says whether it or the amount counts. Leave out the one that "
        "does not, or add erc_standard as in token_transfers with token ids: `nbext ingest --help` lists all formats."
    )
    columns["token_id"] = ["", ""]
    path = table(tmp_path / "t.csv", tuple(columns), list(zip(*columns.values(), strict=True)))
    take(data, path, options=options)
    with Tables(data) as tables:
        assert tables.balances() == {
            (wallet(9), wallet(0)): -2,
            (wallet(9), wallet(1)): 1,
            (wallet(9), wallet(2)): 1,
        }


def test_a_log_that_a_file_of_blockscout_has_is_read(data, tmp_path):
    header = (
        "TxHash,BlockNumber,UnixTimestamp,FromAddress,ToAddress,TokenContractAddress,Type,TokenDecimals,TokenSymbol,"
        "TokenDecimals,TokensTransferred,TransactionFee,Status,ErrCode"
    )
    rows = [
        f"{transaction(n)},{12_000_000 + n},2021-06-0{n} 10:00:00.000000Z,{sender},{recipient},{UNI},IN,18,UNI,18,"
        f"{amount},21000,ok,"
        for n, (sender, recipient, amount) in enumerate(
            ((wallet(0), wallet(1), 10**20), (wallet(1), wallet(2), 5)), 1
        )
    ]
    path = tmp_path / "token-transfers.csv"
    path.write_text("\r\n".join([header, *rows, ""]))
    assert [file.kind.name for file in take(data, path).files] == [
        "token transfers (Blockscout's CSV export)"
    ]
    with Tables(data) as tables:
        assert tables.balances() == of_uni(10**20 - 5, 5)
        assert tables.rows("SELECT timestamp FROM blocks ORDER BY 1") == [
            (1622541600,),
            (1622628000,),
        ]


@pytest.mark.parametrize("scale", [0, 9, 38])
def test_decimals_of_256_bits_are_read_to_the_digit(data, tmp_path, log, scale):
    values = [10**30 if scale else 10**76 - 1, 10**20, 0]
    kind = pa.decimal256(76, scale)
    logs = [log(0, n, value) for n, value in enumerate(values, 1)]
    path = write_parquet(tmp_path / "t.parquet", logs)
    whole = pq.read_table(path)
    column = pa.array([Decimal(value) for value in values], kind)
    place = whole.schema.get_field_index("value")
    pq.write_table(whole.set_column(place, "value", column), path)
    assert take(data, path).bad_rows == 0
    with Tables(data) as tables:
        assert tables.balances() == {
            (wallet(1000), wallet(0)): -sum(values),
            **{(wallet(1000), wallet(n)): value for n, value in enumerate(values, 1) if value},
        }
    # A part of the smallest unit is a bad row, with its number.
    if scale:
        column = pa.array([Decimal(1), Decimal("1.5"), None], kind)
        pq.write_table(whole.set_column(place, "value", column), tmp_path / "parts.parquet")
        report = take(tmp_path / "parts", tmp_path / "parts.parquet")
        assert [(bad.row, bad.value) for bad in report.bad] == [
            (2, f"{Decimal('1.5'):.{scale}f}"),
            (3, None),
        ]


HOLDERS = [[wallet(1), "10"], [wallet(2), "5.5"]]
OF_HOLDERS = SnapshotOptions(tokens={"": UNI}, block=12_000_000)
SNAPSHOT = {(UNI, wallet(1)): 10 * 10**18, (UNI, wallet(2)): 55 * 10**17}


def as_utf16(text):
    return text.encode("utf-16")


def commented(text):
    first, *lines = text.splitlines()
    return "\n".join(["# ours", "# of Monday", first, lines[0], "# a half", *lines[1:]]).encode()


@pytest.mark.parametrize("write", [as_utf16, commented, lambda text: gzip.compress(as_utf16(text))])
def test_a_list_of_holders_is_read_in_utf16_and_between_comments(data, tmp_path, write):
    path = table(tmp_path / "h.csv", ("address", "balance"), [*HOLDERS, [wallet(3), "x"]])
    path.write_bytes(write(path.read_text()))
    report = take(data, path, options=OF_HOLDERS)
    assert [(bad.row, bad.why) for bad in report.bad] == [
        (4 if write is commented else 3, "balance is not a number")
    ]
    assert balances(data) == SNAPSHOT


@pytest.mark.slow
def test_the_claims_of_a_merkle_distribution_are_amounts_in_the_smallest_unit(data, tmp_path):
    claims = {
        wallet(1): {"index": 0, "amount": hex(10 * 10**18), "proof": ["0x" + "a" * 64]},
        wallet(2): {"index": 1, "amount": str(55 * 10**17), "proof": []},
    }
    document = {"merkleRoot": "0x" + "b" * 64, "tokenTotal": "0xd7", "claims": claims}
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(document, indent=1))
    assert take(data, path, options=OF_HOLDERS).bad_rows == 0
    assert balances(data) == SNAPSHOT
    path.write_text(json.dumps(document))
    assert take(tmp_path / "line", path, options=OF_HOLDERS).bad_rows == 0
    assert balances(tmp_path / "line") == SNAPSHOT


@pytest.mark.slow
def test_an_exponent_is_no_token_id_no_block_and_no_time_in_any_format(data, tmp_path, log):
    path = table(
        tmp_path / "ids.csv",
        ("owner", "token_id"),
        [[wallet(1), "1.23457E+20"], [wallet(2), "5"], [wallet(3), "6.000"], [wallet(4), "0x7"]],
    )
    report = take(data, path, options=SnapshotOptions(tokens={"": wallet(9)}, block=12_000_000))
    assert [(bad.row, bad.value) for bad in report.bad] == [(1, "1.23457E+20")]
    with Tables(data) as tables:
        assert tables.owners() == {(wallet(9), n): wallet(n - 3) for n in (5, 6, 7)}
    columns = {"block_number": ["1.2E7", "1"], "block_timestamp": ["0", "1.6E9"]}
    path = write_parquet(tmp_path / "t.parquet", [log(0, 1, 5), log(0, 2, 5)], **columns)
    with pytest.raises(IngestError, match=r"row 1: block number is not a whole number: '1\.2E7'"):
        take(tmp_path / "t", path)
    times = [["1E2", "0"], ["7", "1.6E9"], ["8", "1600000000"]]
    report = take(tmp_path / "b", table(tmp_path / "b.csv", ("number", "timestamp"), times))
    assert [(bad.row, bad.value) for bad in report.bad] == [(1, "1E2 0"), (2, "7 1.6E9")]


@pytest.mark.slow
def test_zero_bytes_at_the_end_of_a_symbol_are_nowhere(data, tmp_path):
    # As a bytes32 has them, that old contracts return.
    card = {"address": UNI, "symbol": "MKR\0\0\0", "name": "Maker\0", "decimals": 18}
    written = {
        "a.csv": ",".join(card) + "\n" + ",".join(map(str, card.values())) + "\n",
        "b.json": json.dumps([card]),
        "c.json": json.dumps({"name": "list", "tokens": [{"chainId": 1, **card}]}),
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    pq.write_table(pa.table({key: [value] for key, value in card.items()}), tmp_path / "d.parquet")
    for name in (*written, "d.parquet"):
        take(data / name, tmp_path / name)
        with Tables(data / name) as tables:
            found = tables.contract(UNI)
        assert (found["symbol"], found["name"]) == ("MKR", "Maker")


def test_help_lists_each_formats_columns_and_each_of_these_recognises_it(capsys):
    with pytest.raises(SystemExit):
        main(["ingest", "--help"])
    lines = capsys.readouterr().out.splitlines()
    for kind in formats():
        at = lines.index(f"  {kind.name}")
        needs = [names[0] for names in kind.needs.values()]
        assert all(name in lines[at + 1] for name in needs)
        found = recognise(needs)
        assert found is not None
        assert found[0] is kind


def test_what_a_map_cannot_give_is_said_with_what_does(data, tmp_path, ingest):
    path = table(tmp_path / "own.csv")
    of_all = "The one token of a whole file is given by --token UNI."
    found = "Found: src, dst, qty, when, txid."
    for given, message in {
        "token=UNI": (
            f"UsageError: --map: 'token=UNI' does not name a column of a known format. {of_all} "
            "Write --map amount=value,contract=token_address."
        ),
        "contract=UNI": (
            f"IngestError: {path}: it has no column 'uni', which --map names. {found} {of_all}"
        ),
        f"contract={UNI}": (
            f"IngestError: {path}: it has no column '{UNI}', which --map names. {found} {of_all}"
        ),
    }.items():
        assert ingest(path, "--map", f"{MAP[1]},{given}", *DAYS_FIRST) == (2, [message])
    assert ingest(path, "--map", f"{MAP[1]},{MAP[1].partition('=')[0]}=hash") == (
        2,
        ["UsageError: --map: 'src' is given two names. Leave one of them out."],
    )
    lacking = table(tmp_path / "lacking.csv", NAMES[:4], [row[:4] for row in ROWS])
    pairs = MAP[1].rpartition(",")[0]
    assert ingest(lacking, "--map", pairs, "--token", "UNI", *DAYS_FIRST) == (
        2,
        [
            f"IngestError: {lacking}: this looks like a table of transfers, by time, but has no column "
            '"hash". Found: from, to, amount, time. If one of them holds it, map it: --map theirs=hash.'
        ],
    )
    between = tmp_path / "semicolons.csv"
    between.write_text(path.read_text().replace(",", ";"))
    assert ingest(between, *MAP, "--token", "UNI", *DAYS_FIRST) == (
        2,
        [
            f"IngestError: {between}: its columns are separated by semicolons. nbext reads CSV with commas."
        ],
    )
