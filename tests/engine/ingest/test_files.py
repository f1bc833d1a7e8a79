"""Every kind of file is told by its columns, and read exactly."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from nbext.engine.ingest import reading
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.ingest.files import find
from nbext.engine.ingest.formats import CHAIN_NAMES, formats, recognise
from nbext.errors import IngestError, ValidationError
from tests import slow
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, take, wallet
from tests.engine.ingest.replay import tokens

HUGE = 2**256 - 1


def raw(address):
    return bytes.fromhex(address[2:])


def balances(data):
    with Tables(data) as tables:
        return tables.balances()


@pytest.fixture
def made(log):
    return [log(0, 1, HUGE), log(1, 2, 10**30), log(0, 3, 10**20, contract=1001)]


def test_csv_gzip_and_parquet_of_the_same_rows_make_the_same_data(tmp_path, made):
    plain = write_csv(tmp_path / "a.csv", made)
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    parquet = write_parquet(tmp_path / "c.parquet", made)
    prints = set()
    for path in (plain, packed, parquet):
        take(tmp_path / path.stem, path)
        with Tables(tmp_path / path.stem) as tables:
            prints.add(tables.generation.fingerprint)
    assert len(prints) == 1
    assert balances(tmp_path / "a") == tokens(made).balances


def as_json(form, records):
    lines = "".join(json.dumps(record) + "\n" for record in records)
    return {
        "lines": lines,
        "lines.gz": gzip.compress(lines.encode()),
        "one line": lines.rstrip(),
        "list": json.dumps(records),
        "indented list": json.dumps(records, indent=2),
        "Etherscan": json.dumps({"status": "1", "message": "OK", "result": records}),
        "Dune": json.dumps(
            {"execution_id": "01", "result": {"rows": records, "metadata": {}}}, indent=1
        ),
    }[form]


FORMS = ("lines", "lines.gz", "list", "indented list", "Etherscan", "Dune")


@pytest.mark.parametrize(("value", "read"), [("1.2345678e+21", None), ("1e3", None), ("5.0", 5)])
@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_a_number_with_an_exponent_is_no_amount_in_a_line_nor_in_a_document_of_json(
    data, tmp_path, log, form, value, read
):
    path = tmp_path / "t.json"
    path.write_text(form.format(json.dumps(log(0, 1, "@")._asdict()).replace('"@"', value)))
    if read is None:
        with pytest.raises(IngestError, match="value is not a whole number from 0 to"):
            take(data, path)
    else:
        take(data, path)
        with Tables(data) as tables:
            assert [row[-1] for row in tables.transfers()] == [read]


@pytest.mark.parametrize("again", ["value", "VALUE"])
def test_a_parquet_file_that_has_a_column_twice_is_refused_in_whatever_case(
    data, tmp_path, log, again
):
    path = write_parquet(tmp_path / "t.parquet", [log(0, 1, 5)])
    rows = pq.read_table(path)
    pq.write_table(rows.append_column(again, pa.array(["7"])), path)
    with pytest.raises(IngestError) as caught:
        take(data, path)
    says = f"columns 'value' and '{again}' could each be its value. Rename all but one."
    assert str(caught.value) == f"{path}: {says}"


def test_a_page_of_transfers_says_that_there_are_more_than_its_own(data, tmp_path, log):
    path = tmp_path / "page.json"
    path.write_text(json.dumps({"items": [log(0, 1, 5)._asdict()], "next_page_params": {"id": 1}}))
    assert take(data, path).lines()[0] == (
        f"{path}: token_transfers (ethereum-etl), 1 row, ethereum; 'next_page_params' says that there are more rows, "
        "which are not here"
    )


@pytest.mark.parametrize("form", slow.but_the_first(FORMS, 2))
def test_json_of_the_same_rows_makes_the_same_data(data, tmp_path, made, form):
    plain = write_csv(tmp_path / "a.csv", made)
    with plain.open() as file:
        records = list(csv.DictReader(file))
    for record in records:
        # As numbers, which a float would not hold.
        record["value"], record["block_number"] = int(record["value"]), int(record["block_number"])
    found = as_json(form, records)
    (tmp_path / "b").write_bytes(found if isinstance(found, bytes) else found.encode())
    take(tmp_path / "one", plain)
    take(data, tmp_path / "b")
    with Tables(tmp_path / "one") as one, Tables(data) as two:
        assert one.generation.fingerprint == two.generation.fingerprint


@pytest.mark.parametrize("form", slow.but_the_first(["Dune", "one line", *FORMS[:-1]], 2))
def test_holders_come_as_json_too(data, tmp_path, form):
    holders = [
        {"wallet": wallet(7), "balance": HUGE, "note": {"a": [1]}},
        {"wallet": wallet(8), "balance": "5"},
    ]
    holders = holders[:1] if form == "one line" else holders
    found = as_json(form, holders)
    (tmp_path / "holders").write_bytes(found if isinstance(found, bytes) else found.encode())
    options = SnapshotOptions(tokens={"": wallet(100)}, decimals=0, unit="raw", block=5)
    report = take(data, tmp_path / "holders", options=options)
    assert [held for (_, address), held in sorted(balances(data).items())] == [HUGE, 5][
        : len(holders)
    ]
    assert report.bad_rows == 0


def test_a_line_that_is_no_json_is_a_bad_row_and_its_neighbours_are_taken(data, tmp_path, made):
    plain = write_csv(tmp_path / "a.csv", made)
    with plain.open() as file:
        lines = [json.dumps(record) for record in csv.DictReader(file)]
    deep = '{"value": ' + "[" * 100_000 + "]" * 100_000 + "}"
    (tmp_path / "b.ndjson").write_text(
        "\n".join([lines[0], "[1]", lines[1], '{"value": 1', deep, lines[2]]) + "\n"
    )
    report = take(data, tmp_path / "b.ndjson")
    assert balances(data) == tokens(made).balances
    assert report.bad_rows == 3
    assert (data / "bad-rows.csv").read_text().count("not a JSON object") == 3


def test_a_stream_of_many_kinds_gives_its_transfers(data, tmp_path, made):
    plain = write_csv(tmp_path / "a.csv", made)
    with plain.open() as file:
        rows = enumerate(csv.DictReader(file))
        records = [{"type": "token_transfer", **record, "item_id": f"t_{n}"} for n, record in rows]
    records.insert(0, {"type": "block", "number": 5, "hash": "0x" + "ab" * 32})
    (tmp_path / "b.ndjson").write_text(as_json("lines", records))
    report = take(data, tmp_path / "b.ndjson")
    assert balances(data) == tokens(made).balances
    assert "  1 row of a stream that is no token transfer skipped" in report.lines()


@pytest.mark.parametrize("late", ["type", "Type"])
def test_a_column_that_comes_after_the_columns_are_settled_is_told(
    data, tmp_path, made, monkeypatch, late
):
    plain = write_csv(tmp_path / "a.csv", made)
    with plain.open() as file:
        records = list(csv.DictReader(file))
    records[-1][late] = "log"
    (tmp_path / "b.ndjson").write_text(as_json("lines", records))
    monkeypatch.setattr(reading, "_LOOKED_AT", 2)
    with pytest.raises(IngestError, match=f"row 3 has '{late}', which none of the first 2 has"):
        take(data, tmp_path / "b.ndjson")


def test_lines_of_another_format_name_what_they_lack(data, tmp_path):
    (tmp_path / "b.ndjson").write_text('{"a": 1, "b": 2}\n{"a": 3}\n')
    with pytest.raises(
        IngestError,
        match=r"no known format has any of these columns: a, b\. Transfers, for one, need",
    ):
        take(data, tmp_path / "b.ndjson")


def test_a_bigquery_export_whose_numbers_are_text_is_read(data, tmp_path, made):
    path = write_parquet(
        tmp_path / "t.parquet",
        made,
        log_index=["1", "2", "3"],
        block_number=["10", "11", "12"],
        block_timestamp=[f"2021-06-09 10:00:0{n} UTC" for n in range(3)],
    )
    take(data, path)
    with Tables(data) as tables:
        assert tables.balances() == tokens(made).balances
        assert tables.rows("SELECT block, timestamp FROM blocks") == [
            (10, 1_623_232_800),
            (11, 1_623_232_801),
            (12, 1_623_232_802),
        ]


@pytest.mark.parametrize(
    "written",
    slow.but_the_first(
        [
            "2021-06-09 04:30:00.5-05:30",
            "1623232800",
            "2021-06-09 10:00:00",
            "2021-06-09 10:00:00 UTC",
            "2021-06-09T10:00:00Z",
            "2021-06-09 10:00:00.999999 UTC",
            "2021-06-09T12:00:00+02:00",
            "2021-06-09 12:00:00+02",
            "2021-06-09 12:00:00 UTC+2",
            "2021-06-09 05:00 EST",
            "2021-06-09 06:00 America/New_York",
            "2021-06-09 10:00 utc",
        ],
        2,
    ),
)
def test_a_time_is_the_same_moment_however_it_is_written(data, tmp_path, made, written):
    take(data, write_parquet(tmp_path / "t.parquet", made, block_timestamp=[written] * 3))
    with Tables(data) as tables:
        assert {row[0] for row in tables.rows("SELECT timestamp FROM blocks")} == {1_623_232_800}


@pytest.mark.parametrize("suffix", ["PM", "PDT", "noon", "BST", "PST"])
def test_a_time_is_not_read_without_what_is_written_behind_it(data, tmp_path, made, suffix):
    written = [f"2021-06-09 01:00:00 {suffix}"] * 3
    with pytest.raises(IngestError, match=f"row 1: block timestamp is not a time.*{written[0]}"):
        take(data, write_parquet(tmp_path / "t.parquet", made, block_timestamp=written))


def test_a_stream_of_several_types_gives_its_token_transfers(data, tmp_path, made):
    take(
        data,
        write_parquet(
            tmp_path / "t.parquet", made, type=["token_transfer", "token_transfer", "log"]
        ),
    )
    assert balances(data) == tokens(made[:2]).balances


def cryo(path, logs, **values):
    columns = {
        "block_number": [log.block_number for log in logs],
        "transaction_index": [0 for _ in logs],
        "log_index": [log.log_index for log in logs],
        "transaction_hash": [raw(log.transaction_hash) for log in logs],
        "erc20": [raw(log.token_address) for log in logs],
        "from_address": [raw(log.from_address) for log in logs],
        "to_address": [raw(log.to_address) for log in logs],
        **values,
        "chain_id": [1 for _ in logs],
    }
    pq.write_table(pa.table(columns), path)
    return path


def test_cryos_binary_addresses_and_value_strings_are_read(data, tmp_path, made):
    path = cryo(
        tmp_path / "t.parquet",
        made,
        value_string=[str(log.value) for log in made],
        value_f64=[float(log.value) for log in made],
    )
    report = take(data, path, chain=None)
    assert (report.files[0].kind.name, report.erc20) == ("erc20_transfers (cryo)", 3)
    assert balances(data) == tokens(made).balances


def test_cryos_binary_values_are_read_exactly(data, tmp_path, made):
    take(
        data,
        cryo(
            tmp_path / "t.parquet",
            made,
            value_binary=[log.value.to_bytes(32, "big") for log in made],
        ),
    )
    assert balances(data) == tokens(made).balances


def test_cryos_erc721_transfers_are_nfts_although_their_contract_column_is_named_erc20(
    data, tmp_path, log
):
    made = [log(0, 1, HUGE), log(0, 1, 10**18)]
    report = take(
        data, cryo(tmp_path / "t.parquet", made, token_id_string=[str(log.value) for log in made])
    )
    assert (report.erc20, report.nft, report.odd["inferred"]) == (0, 2, 0)
    with Tables(data) as tables:
        assert tables.owners() == {
            (wallet(1000), HUGE): wallet(1),
            (wallet(1000), 10**18): wallet(1),
        }


def dune(path, logs, **columns):
    """Write logs as Dune's export of a decoded event; ``columns`` are the event's own."""
    rows = {
        "contract_address": [log.token_address for log in logs],
        "evt_tx_hash": [log.transaction_hash for log in logs],
        "evt_index": [str(log.log_index) for log in logs],
        "blockchain": ["ethereum"] * len(logs),
        "evt_block_time": [f"2024-01-31 00:00:0{log.block_number - 100}.000 UTC" for log in logs],
        "evt_block_number": [str(log.block_number) for log in logs],
        "from": [log.from_address for log in logs],
        "to": [log.to_address for log in logs],
        **columns,
    }
    pacsv.write_csv(pa.table(rows), path)
    return path


def test_dunes_decoded_events_are_read_with_their_chain_and_times(data, tmp_path, log):
    coins, ids, pieces = (
        [log(0, 1, value, contract=contract) for value in (HUGE, 7)] for contract in (1, 2, 3)
    )
    erc20 = dune(tmp_path / "a.csv", coins, value=[str(each.value) for each in coins])
    erc721 = dune(tmp_path / "b.csv", ids, tokenId=[str(each.value) for each in ids])
    erc1155 = dune(
        tmp_path / "c.csv",
        pieces,
        operator=["0x"] * 2,
        id=[str(each.value) for each in pieces],
        value=["10", "3"],
    )
    report = take(data, erc20, erc721, erc1155, chain=None)
    assert [(file.kind.name, file.chain_name) for file in report.files] == [
        ("ERC20 Transfer events (Dune)", "ethereum"),
        ("ERC721 Transfer events (Dune)", "ethereum"),
        ("ERC1155 TransferSingle events (Dune)", "ethereum"),
    ]
    with Tables(data) as tables:
        counts = {(wallet(2), wallet(1)): 2, (wallet(3), wallet(1)): 13}
        assert tables.balances() == tokens(coins).balances | counts
        assert tables.owners() == {
            (wallet(contract), value): wallet(1) for contract in (2, 3) for value in (HUGE, 7)
        }
        assert tables.rows("SELECT max(timestamp) FROM blocks") == [(1_706_659_200,)]


def test_a_chain_that_is_named_in_words_may_not_contradict_the_option(data, tmp_path, made):
    path = dune(tmp_path / "t.csv", made, value=["1"] * 3)
    with pytest.raises(
        IngestError, match=r"its rows are on chain ethereum, but --chain polygon was given"
    ):
        take(data, path, chain="polygon")


def test_a_file_of_another_chain_than_was_asked_for_is_refused(data, tmp_path, made):
    path = cryo(tmp_path / "t.parquet", made, value_string=["1"] * 3)
    with pytest.raises(
        IngestError, match=r"its rows are on chain 1, but --chain polygon was given"
    ):
        take(data, path, chain="polygon")


def test_a_file_that_names_no_chain_needs_one(data, tmp_path, made):
    with pytest.raises(IngestError, match="its rows name no chain"):
        take(data, write_parquet(tmp_path / "t.parquet", made), chain=None)


def test_a_misspelt_chain_is_corrected(data, tmp_path, made):
    with pytest.raises(ValidationError, match="Did you mean 'ethereum'"):
        take(data, write_parquet(tmp_path / "t.parquet", made), chain="etherium")


ETHERSCAN = [
    "blockNumber",
    "timeStamp",
    "hash",
    "from",
    "contractAddress",
    "to",
    "value",
    "tokenName",
    "tokenSymbol",
    "tokenDecimal",
    "transactionIndex",
]


def etherscan(path, logs):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(ETHERSCAN)
        for log in logs:
            writer.writerow(
                [
                    log.block_number,
                    1_622_447_001,
                    log.transaction_hash,
                    log.from_address,
                    log.token_address,
                    log.to_address,
                    log.value,
                    "SuperFarm",
                    "SUPER",
                    18,
                    3,
                ]
            )
    return path


def test_etherscans_tokentx_is_read_with_the_names_in_its_rows(data, tmp_path, log):
    made = [log(0, 1, 9, tx=5), log(0, 1, 9, tx=5), log(1, 2, 4)]
    take(data, etherscan(tmp_path / "a.csv", made))
    # The same rows in another export, which begins elsewhere, are the same transfers.
    report = take(data, etherscan(tmp_path / "b.csv", made[1:]))
    assert (report.new, report.odd["duplicates"]) == (0, 2)
    with Tables(data) as tables:
        assert tables.balances() == tokens(made).balances
        known = tables.contract(wallet(1000))
    assert (known["name"], known["symbol"], known["decimals"], known["standard"]) == (
        "SuperFarm",
        "SUPER",
        18,
        "ERC20",
    )


@pytest.mark.parametrize(
    "runs",
    slow.but_the_first([["etl"], ["etl", "etherscan"], ["etherscan", "etl"]]),
    ids=["together", "ethereum-etl first", "Etherscan first"],
)
def test_transfers_that_etherscan_and_ethereum_etl_tell_both_are_one(data, tmp_path, log, runs):
    both = [log(0, 1, 9, tx=5), log(0, 1, 9, tx=5), log(1, 2, 4), log(0, 1, 9, tx=6)]
    one, other = log(0, 1, 9, tx=7), log(0, 2, 8, tx=8)
    paths = {
        "etl": write_csv(tmp_path / "etl.csv", [*both, one]),
        "etherscan": etherscan(tmp_path / "etherscan.csv", [*both, other]),
    }
    if len(runs) == 1:
        report = take(data, *paths.values())
    for run in runs if len(runs) == 2 else []:
        report = take(data, paths[run])
    assert (report.odd["duplicates"], report.odd["matched_by_content"]) == (4, 4)
    assert "4 of these matched by content alone, because one source has no log index" in str(report)
    # Both again, in files that begin elsewhere, are nothing new.
    again = take(
        data,
        write_csv(tmp_path / "again.csv", [one, *both]),
        etherscan(tmp_path / "again too.csv", [other, *both[1:]]),
    )
    assert again.new == 0
    with Tables(data) as tables:
        assert tables.balances() == tokens([*both, one, other]).balances


def test_tokens_give_names_exactly_as_they_stand_on_chain(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        "address,symbol,name,decimals,total_supply,block_number\n"
        f"{wallet(1)},NA,<b>null</b>,18,{HUGE},1\n"
        f'{wallet(2)},"a,""b""",🦄 _x_,,,\n'
        f"{wallet(3)},,,300,1e18,\n",
        encoding="utf-8",
    )
    report = take(data, path)
    assert [line for line in report.lines() if "left out" in line] == [
        "  2 values of tokens left out, which are no standards that nbext knows, no decimals from 0 to 255 or no "
        "supplies below 2**256"
    ]
    with Tables(data) as tables:
        found = [tables.contract(wallet(n)) for n in (1, 2, 3)]
    assert [(c["symbol"], c["name"], c["decimals"], c["total_supply"]) for c in found] == [
        ("NA", "<b>null</b>", 18, str(HUGE)),
        ('a,"b"', "🦄 _x_", None, None),
        (None, None, None, None),
    ]


def test_a_value_of_a_token_that_cannot_be_read_is_counted_and_its_others_are_taken(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        "address,symbol,name,decimals,total_supply,standard\n"
        f"{wallet(1)},A,A,18.5,{2**256},erc-20\n{wallet(2)},B,B,,0,ERC721A\n{wallet(3)},C,C,0,007,\n"
    )
    assert take(data, path).odd["unread"] == 3
    with Tables(data) as tables:
        found = [tables.contract(wallet(n)) for n in (1, 2, 3)]
    assert [(c["standard"], c["decimals"], c["total_supply"]) for c in found] == [
        ("ERC20", None, None),
        (None, None, "0"),
        (None, 0, "7"),
    ]


def test_cryos_metadata_is_read(data, tmp_path):
    pq.write_table(
        pa.table(
            {
                "erc20": [raw(wallet(1))],
                "name": ["One"],
                "symbol": ["ONE"],
                "decimals": pa.array([6], pa.uint32()),
                "chain_id": [1],
            }
        ),
        tmp_path / "a.parquet",
    )
    pq.write_table(
        pa.table({"erc721": [raw(wallet(2))], "name": ["Two"], "symbol": ["TWO"], "chain_id": [1]}),
        tmp_path / "b.parquet",
    )
    take(data, tmp_path / "a.parquet", tmp_path / "b.parquet", chain=None)
    with Tables(data) as tables:
        assert [tables.contract(wallet(n))["standard"] for n in (1, 2)] == ["ERC20", "ERC721"]


def write_list(path, *entries):
    path.write_text(json.dumps({"name": "A list", "tokens": list(entries)}), encoding="utf-8")
    return path


def test_a_token_list_names_tokens_on_many_chains_and_the_rest_is_counted(data, tmp_path):
    path = write_list(
        tmp_path / "list.json",
        {
            "chainId": 1,
            "address": wallet(1).upper().replace("X", "x"),
            "symbol": "ONE",
            "name": "A \ud800 name",
            "decimals": 6,
            "logoURI": "https://example.org/1.png",
        },
        {
            "chainId": 501000101,
            "address": "5mbK36SZ7J19An8jFochhQS4of8g6BwUjbeCSxBSoWdp",
            "symbol": "S",
            "decimals": 6,
        },
        {"chainId": 1, "address": "0x12", "symbol": "BAD"},
    )
    report = take(data, path, chain=None)
    assert (report.rows, report.bad_rows) == (3, 1)
    assert (report.bad[0].row, report.bad[0].why) == (3, "not an address")
    assert report.odd["elsewhere"] == 1
    with Tables(data) as tables:
        assert tables.contract(wallet(1)) == {
            "standard": "ERC20",
            "name": "A � name",
            "symbol": "ONE",
            "decimals": 6,
            "verified": True,
            "total_supply": None,
            "holders": None,
            "transfers": None,
        }


def test_what_the_chain_says_goes_before_what_a_list_says(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(f"address,symbol,name,decimals,total_supply\n{wallet(1)},CHAIN,,18,\n")
    take(
        data,
        path,
        write_list(
            tmp_path / "l.json",
            {"chainId": 1, "address": wallet(1), "symbol": "LIST", "name": "Listed", "decimals": 6},
        ),
    )
    with Tables(data) as tables:
        known = tables.contract(wallet(1))
    assert (known["symbol"], known["name"], known["decimals"], known["verified"]) == (
        "CHAIN",
        "Listed",
        18,
        True,
    )


def test_blocks_give_times_to_transfers_that_have_none(data, tmp_path, log):
    blocks = tmp_path / "blocks.csv"
    blocks.write_text("number,hash,timestamp\n100,0x1,1600000000\n101,0x2,1600000012\n")
    take(data, blocks, write_parquet(tmp_path / "t.parquet", [log(block=100)]))
    with Tables(data) as tables:
        assert tables.rows("SELECT block, timestamp FROM blocks") == [
            (100, 1_600_000_000),
            (101, 1_600_000_012),
        ]
        assert tables.generation.chains[0].last_timestamp == 1_600_000_012


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (
            [
                "token_address",
                "from_address",
                "to_address",
                "value",
                "transaction_hash",
                "log_index",
                "block_number",
            ],
            "token_transfers (ethereum-etl)",
        ),
        (["Address", "Balance"], "holders"),
        (["HolderAddress", "Balance", "PendingBalanceUpdate"], "holders"),
        (["chain_id", "contract_address", "owner", "token_id"], "holders by token id"),
        (["number", "timestamp", "hash"], "blocks"),
    ],
)
def test_a_kind_is_told_by_columns_in_any_case(columns, kind):
    found, _ = recognise(columns)
    assert found.name == kind


@pytest.mark.parametrize("spelled", CHAIN_NAMES)
def test_a_file_of_any_kind_may_name_the_chain_of_its_rows(spelled):
    for kind in formats():
        header = [names[0] for names in kind.needs.values()]
        found, columns = recognise([*header, spelled])
        assert (found, columns["chain_id"]) == (kind, kind.needs.get("chain_id", [spelled])[0])


SOME_CHAINS = {
    "t": "from,to,amount,block,hash,contract,blockchain",
    "h": "holder,balance,contract_address,block_number,chain",
    "b": "number,timestamp,network",
}


@pytest.mark.parametrize("name", SOME_CHAINS)
@pytest.mark.parametrize(
    ("chains", "says"),
    [
        (
            ["ethereum", "base"],
            "its rows are on several chains (ethereum, base). Split it by chain.",
        ),
        (["base", "base"], "its rows are on chain base, but --chain ethereum was given."),
    ],
)
def test_rows_of_another_chain_are_never_taken_for_those_of_the_one_that_is_given(
    data, tmp_path, name, chains, says
):
    values = {
        "from": wallet(1),
        "to": wallet(2),
        "holder": wallet(1),
        "contract": wallet(1000),
        "contract_address": wallet(1000),
        "hash": "0x" + "1" * 64,
    }
    header = SOME_CHAINS[name].split(",")
    path = tmp_path / f"{name}.csv"
    rows = [",".join([*(values.get(one, "1600000000") for one in header[:-1]), c]) for c in chains]
    path.write_text("\n".join([",".join(header), *rows]) + "\n")
    with pytest.raises(IngestError) as refused:
        take(data, path, options=SnapshotOptions(decimals=0))
    assert str(refused.value).endswith(f"{path.name}: {says}")


@pytest.mark.parametrize(
    ("chains", "says"),
    [
        (["eth", "Ethereum ", "eip155:1"], None),
        (["", ""], None),
        (["eth", ""], None),
        (["1.0", "1.0", ""], None),
        (
            ["base", ""],
            "its rows are on several chains (base, that of --chain where they name none). Split it by chain.",
        ),
        (["nosuch"], "column 'network': Unknown chain 'nosuch'. Allowed: "),
        (["mainnet", "Mainnet"], None),
        (["base", "mainnet"], "its rows are on several chains ("),
    ],
)
def test_a_chain_by_several_names_is_one_and_where_none_is_named_it_is_the_one_that_is_given(
    data, tmp_path, chains, says
):
    path = tmp_path / "b.csv"
    rows = [f"{number},1600000000,{chain}\n" for number, chain in enumerate(chains, 1)]
    path.write_text("number,timestamp,network\n" + "".join(rows))
    if says:
        with pytest.raises(IngestError) as refused:
            take(data, path)
        assert f"{path.name}: {says}" in str(refused.value)
        return
    assert take(data, path).lines()[0] == f"{path}: blocks, {len(chains)} rows, ethereum"


@pytest.mark.parametrize(
    ("header", "row"),
    [("number,timestamp", "7,1600000000"), ("address,symbol,name,decimals", f"{wallet(1)},T,,6")],
)
def test_mainnet_is_a_network_of_each_chain_and_not_ethereums_alone(data, tmp_path, header, row):
    path = tmp_path / "m.csv"
    path.write_text(f"network,{header}\nMainnet,{row}\nmainnet,{row}\n")
    with pytest.raises(IngestError, match=r"its rows name no chain. Give it: --chain ethereum"):
        take(data, path, chain=None)
    assert [file.chain_name for file in take(data, path, chain="polygon").files] == ["polygon"]


def test_of_tokens_whose_chains_are_named_those_of_a_mainnet_are_bad_rows(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        f"network,address,symbol,name,decimals\nmainnet,{wallet(1)},T1,,6\nbase,{wallet(2)},T2,,6\n"
    )
    report = take(data, path)
    assert [(bad.row, bad.why, bad.value) for bad in report.bad] == [
        (1, "names no chain", "mainnet")
    ]
    with Tables(data) as tables:
        found = "SELECT chain_id, symbol FROM contracts WHERE regexp_full_match(symbol, 'T[0-9]')"
        assert tables.rows(found) == [(8453, "T2")]


def test_tokens_of_other_chains_are_theirs_also_beside_a_chain_that_is_given(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        "chain,address,symbol,name,decimals\n"
        f"arb,{wallet(1)},T1,,6\nETH,{wallet(2)},T2,,6\nnosuch,{wallet(3)},T3,,6\n"
    )
    report = take(data, path)
    assert "  1 token on a chain that nbext does not support" in report.lines()
    with Tables(data) as tables:
        assert tables.rows(
            "SELECT chain_id, symbol FROM contracts WHERE regexp_full_match(symbol, 'T[0-9]') ORDER BY 2"
        ) == [(42161, "T1"), (1, "T2")]


def test_a_file_whose_rows_are_on_a_chain_that_nobody_knows_is_refused_alone(data, tmp_path):
    good, bad = tmp_path / "a.csv", tmp_path / "e.csv"
    good.write_text("number,timestamp,network\n1,1600000000,ethereum\n")
    bad.write_text("number,timestamp,chain_id\n1,1600000000,1\n2,1600000012,101\n")
    report = take(data, good, bad)
    assert report.lines()[0] == f"{good}: blocks, 1 row, ethereum"
    (refused,) = report.refused
    assert str(refused).startswith(f"{bad}: column 'chain_id': Unknown chain '101'.")


def test_tokens_that_name_no_chain_are_of_the_one_that_is_given(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        "network,address,symbol,name,decimals\n"
        f",{wallet(1)},T1,,6\n  ,{wallet(2)},T2,,6\n137.0,{wallet(3)},T3,,6\n"
    )
    report = take(data, path, chain="arbitrum")
    assert report.bad == []
    with Tables(data) as tables:
        assert tables.rows(
            "SELECT chain_id, symbol FROM contracts WHERE regexp_full_match(symbol, 'T[0-9]') ORDER BY 2"
        ) == [(42161, "T1"), (42161, "T2"), (137, "T3")]


def test_columns_that_fit_nothing_are_no_kind():
    assert recognise(["a", "b"]) is None


def test_arrows_own_csv_of_the_rows_is_read(data, tmp_path, made):
    table = pq.read_table(write_parquet(tmp_path / "t.parquet", made))
    pacsv.write_csv(table, tmp_path / "t.csv")
    take(data, tmp_path / "t.csv")
    assert balances(data) == tokens(made).balances


def test_a_column_that_is_mapped_goes_before_one_that_has_the_name_already(data, tmp_path, log):
    row = log(0, 1, 10**20)
    path = tmp_path / "t.csv"
    header = [
        "value",
        "amount_raw",
        "token_address",
        "contract",
        *(name for name in row._fields if "_a" not in name),
    ]
    rest = row._asdict()
    fields = [
        "2",
        row.value,
        wallet(2000),
        row.token_address,
        *(rest[name] for name in header[4:] if name != "value"),
    ]
    header = [
        *header[:4],
        *(name for name in header[4:] if name != "value"),
        "from_address",
        "to_address",
    ]
    path.write_text(
        ",".join(header)
        + "\n"
        + ",".join(map(str, [*fields, row.from_address, row.to_address]))
        + "\n"
    )
    take(data, path, renamed={"amount_raw": "value", "contract": "token_address"})
    assert balances(data) == tokens([row]).balances


def test_a_column_that_is_mapped_and_not_there_refuses_the_file(data, tmp_path, log):
    path = write_csv(tmp_path / "t.csv", [log()])
    with pytest.raises(IngestError) as caught:
        take(data, path, renamed={"amout": "value"})
    assert str(caught.value) == (
        f"{path}: it has no column 'amout', which --map names. Found: token_address, from_address, to_address, value, "
        "transaction_hash, log_index, block_number."
    )


@pytest.mark.slow
@pytest.mark.parametrize("extra", slow.but_the_first(["Row", "row", "file", "fault", "wallet"]))
def test_columns_that_no_format_has_change_nothing_whatever_they_are_called(tmp_path, log, extra):
    logs = [log(0, n, 10**20 + n, block=100 + n) for n in range(1, 40)]
    logs = [*logs, logs[7], logs[30]._replace(transaction_hash="0x1")]
    said = []
    for folder, columns in (("plain", {}), ("extra", {extra: [1, 2, 1] * 13 + [3, 3]})):
        take(tmp_path / folder, write_parquet(tmp_path / "first.parquet", [logs[3]]))
        said.append(
            take(tmp_path / folder, write_parquet(tmp_path / f"{folder}.parquet", logs, **columns))
        )
    assert [(one.new, one.odd["duplicates"], [bad.row for bad in one.bad]) for one in said] == [
        (38, 2, [41])
    ] * 2
    assert (
        balances(tmp_path / "plain") == balances(tmp_path / "extra") == tokens(logs[:39]).balances
    )


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (
            {"File_Row_Number": [1]},
            "a column is called file_row_number, by which DuckDB numbers the rows. Rename the "
            "column.",
        ),
        (
            {"block_timestamp": [b"1"]},
            "column 'block_timestamp' holds BLOB, which is no time. Write seconds since 1970, or "
            "times as text.",
        ),
        (
            {"block_timestamp": [True]},
            "column 'block_timestamp' holds BOOLEAN, which is no time. Write seconds since 1970, "
            "or times as text.",
        ),
    ],
)
def test_a_parquet_file_with_a_column_that_cannot_be_read_is_refused_and_the_others_are_taken(
    data, tmp_path, log, columns, why
):
    rows = [log(0, 1, 10**20), log(1, 2, 10**20)]
    good = write_parquet(tmp_path / "good.parquet", rows[:1])
    odd = write_parquet(tmp_path / "odd.parquet", rows[1:], **columns)
    report = take(data, odd, good)
    (error,) = report.refused
    assert str(error) == f"{odd}: {why}"
    assert balances(data) == tokens(rows[:1]).balances


@pytest.mark.parametrize("write", [write_parquet, write_csv])
def test_a_column_with_the_name_of_the_rows_numbers_is_not_mapped(data, tmp_path, log, write):
    path = write(tmp_path / "t", [log()])
    if write is write_parquet:
        pq.write_table(pq.read_table(path).rename_columns({"value": "Row"}), path)
    else:
        path.write_text(path.read_text().replace("value", "Row"))
    with pytest.raises(IngestError) as caught:
        take(data, path, renamed={"row": "value"})
    assert (
        str(caught.value)
        == f"{path}: --map names 'Row', by which nbext numbers the rows. Rename the column."
    )


@pytest.mark.parametrize(
    "found",
    [
        {wallet(7): "0x10", wallet(8): 5},
        {
            "holders": [
                {"address": wallet(7), "balance": 16, "share": 50.5},
                {"address": wallet(8), "balance": 5},
            ]
        },
        {
            "data": {
                "items": [
                    {"address": wallet(7), "balance": "16"},
                    {"address": wallet(8), "balance": "5"},
                ]
            }
        },
        {
            "result": [
                {"owner_address": wallet(7), "balance": "16"},
                {"owner_address": wallet(8), "balance": "5"},
            ]
        },
        {
            "status": "1",
            "result": [
                {"TokenHolderAddress": wallet(7), "TokenHolderQuantity": "16"},
                {"TokenHolderAddress": wallet(8), "TokenHolderQuantity": "5"},
            ],
        },
    ],
    ids=["by address", "Ethplorer", "Covalent", "Moralis", "Etherscan"],
)
def test_apis_holder_lists_are_read(data, tmp_path, found):
    (tmp_path / "holders.json").write_text(json.dumps(found))
    # What Etherscan's API answers is in the smallest unit, and needs no option.
    unit = None if "status" in found else "raw"
    take(
        data,
        tmp_path / "holders.json",
        options=SnapshotOptions(tokens={"": wallet(100)}, unit=unit, block=5),
    )
    assert balances(data) == {(wallet(100), wallet(7)): 16, (wallet(100), wallet(8)): 5}


def test_bigquerys_newer_tables_are_read_by_the_standard_of_each_row(data, tmp_path, log):
    made = [
        (log(0, 1, 10**20), "ERC-20", None, 10**20),
        (log(0, 1, 7, contract=2000), "ERC-721", 7, None),
        (log(0, 1, 8, contract=3000), "ERC-1155", 8, 5),
    ]
    (tmp_path / "t.ndjson").write_text(
        as_json(
            "lines",
            [
                {
                    "address": row.token_address,
                    "event_type": standard,
                    "token_id": token and str(token),
                    "quantity": many,
                    "from_address": row.from_address,
                    "to_address": row.to_address,
                    "transaction_hash": row.transaction_hash,
                    "event_index": str(row.log_index),
                    "block_number": str(row.block_number),
                    "operator_address": None,
                    "block_timestamp": "2024-01-31 00:00:00 UTC",
                }
                for row, standard, token, many in made
            ],
        )
    )
    take(data, tmp_path / "t.ndjson")
    assert balances(data) == {
        (wallet(1000), wallet(0)): -(10**20),
        (wallet(1000), wallet(1)): 10**20,
        (wallet(2000), wallet(1)): 1,
        (wallet(3000), wallet(1)): 5,
    }


@pytest.mark.parametrize(
    ("header", "renamed"), [("chain_id", {}), ("chain", {"chain": "chain_id"})]
)
def test_tokens_name_their_chains_in_every_way_and_none_is_lost_unsaid(
    data, tmp_path, header, renamed
):
    named = ["ethereum", "1", "eip155:1", "", "999999"]
    path = tmp_path / "tokens.csv"
    path.write_text(
        f"{header},address,symbol,name,decimals\n"
        + "".join(f"{chain},{wallet(n)},T{n},,6\n" for n, chain in enumerate(named))
    )
    report = take(data, path, chain=None, renamed=renamed)
    assert [(bad.row, bad.why) for bad in report.bad] == [(4, "names no chain")]
    assert "  1 token on a chain that nbext does not support" in report.lines()
    with Tables(data) as tables:
        assert tables.rows(
            "SELECT symbol FROM contracts WHERE regexp_full_match(symbol, 'T[0-9]') ORDER BY 1"
        ) == [("T0",), ("T1",), ("T2",)]


def test_dunes_metadata_are_read_with_their_chain(data, tmp_path):
    (tmp_path / "a.csv").write_text(
        f"blockchain,contract_address,symbol,decimals\nbnb,{wallet(1)},A,6\n"
    )
    (tmp_path / "b.csv").write_text(
        "blockchain,contract_address,name,symbol,standard,category\n"
        f"ethereum,{wallet(2)},Bees,B,erc721,art\n"
    )
    take(data, tmp_path / "a.csv", tmp_path / "b.csv", chain=None)
    with Tables(data) as tables:
        assert tables.rows(
            "SELECT chain_id, address, standard, name, symbol, decimals FROM contracts "
            "WHERE symbol IN ('A', 'B')"
        ) == [(1, wallet(2), "ERC721", "Bees", "B", None), (56, wallet(1), "ERC20", None, "A", 6)]


@contextmanager
def no_root(folder):
    """Be a user from whom files can be kept, who owns a folder."""
    if os.geteuid():
        yield
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_not_be_read_is_refused_and_the_others_are_taken(log):
    rows = [log(0, n, 10**20, block=100 + n) for n in range(3)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [write_csv(folder / f"{n}.csv", [row]) for n, row in enumerate(rows)]
        take(folder / "data", paths[0])
        # It may be the first one under another name, as it is as large: that is looked up before anything is opened.
        assert paths[0].stat().st_size == paths[2].stat().st_size
        paths[2].chmod(0)
        with no_root(folder):
            report = take(folder / "data", *paths)
        assert list(map(str, report.refused)) == [
            f"{paths[2]}: the file cannot be read: Permission denied"
        ]
        assert balances(folder / "data") == tokens(rows[:2]).balances


def test_a_pattern_through_a_folder_that_may_not_be_read_is_refused_and_names_it(log):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for place in ("a/b", "a/shut", "c"):
            (folder / place).mkdir(parents=True)
        path = write_csv(folder / "a" / "b" / "one.csv", [log()])
        (folder / "a" / "shut").chmod(0)
        with no_root(folder):
            for pattern in ("**/*.csv", "a/**", "a/*/*.csv", "*/*/one.csv"):
                found, (error,) = find([folder / pattern])
                says = f"{folder}/a/shut/: the folder cannot be read: Permission denied."
                assert (found, str(error)) == ([], says), pattern
            # What is only named, and not looked into, keeps nothing out.
            for pattern in ("a/b/*.csv", "a/[b]/*.csv", "a/b/**"):
                found, refused = find([folder / pattern])
                assert ([one.path for one in found], refused) == ([path], []), pattern
            _, (error,) = find([folder / "c" / "*.csv"])
            assert str(error) == f"{folder}/c/*.csv: no file matches."
        (folder / "a" / "shut").chmod(0o700)
