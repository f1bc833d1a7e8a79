"""``nbext ingest``: what it prints and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from contextlib import closing

import pytest

from nbext.cli import main
from nbext.core.chains import chain_of
from nbext.engine.open import open_dataset
from nbext.errors import InvalidSegment
from nbext.language import language
from nbext.service import metadata
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, take, wallet


def test_a_run_prints_what_it_took_and_ends_well(tmp_path, log, capsys, contracts_file):
    made = [log(0, 1, 10**20), log(1, 1, 5), log(1, 0, 0), log(0, 2, 7, contract=2000)]
    path = write_parquet(tmp_path / "t.parquet", made)
    code = main(
        [
            "ingest",
            str(path),
            str(contracts_file),
            "--chain",
            "eth",
            "--data",
            str(tmp_path / "data"),
        ]
    )
    printed = capsys.readouterr().out.splitlines()
    assert code == 0
    assert printed[:3] == [
        f"{contracts_file}: contracts (ethereum-etl), 2 rows, ethereum",
        f"{path}: token_transfers (ethereum-etl), 4 rows, ethereum",
        "6 rows read: 3 ERC20 transfers (1 contract) and 1 NFT transfer (1 contract), 4 of them new.",
    ]
    assert printed[3:-2] == [
        "  1 transfer from a wallet to itself",
        "  1 ERC20 transfer of zero",
        "  2 mints (from the zero address)",
        "  1 burn (to the zero address)",
        "  1 ERC20 contract with unknown decimals (query it with `unit: raw`)",
        "  no block of ethereum has a time: questions by date are refused. Ingest a file with their times "
        "(number, timestamp)",
    ]
    assert printed[-2].startswith("Now serving generation 000001-")
    assert printed[-1].startswith("Services that run on this folder serve it within two seconds")


@pytest.mark.slow
@pytest.mark.parametrize("printed_to", ["the terminal", "a file"])
def test_beside_a_bar_the_report_stands_in_whole_lines_where_it_was_sent(tmp_path, log, printed_to):
    pty = pytest.importorskip("pty", reason="Windows has no such terminals")
    path = write_csv(tmp_path / "transfers.csv", [log(0, 1, 10**20)])
    words = ["ingest", str(path), "--chain", "ethereum", "--data", str(tmp_path / "data")]
    ours, theirs = pty.openpty()
    with (tmp_path / "printed").open("wb") as file:
        run = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "import sys; from nbext.cli import main; sys.exit(main(sys.argv[1:]))",
                *words,
            ],
            stdout=file if printed_to == "a file" else theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
    os.close(theirs)
    drawn = b""
    with contextlib.suppress(OSError):  # EIO is how a terminal ends
        while some := os.read(ours, 1 << 16):
            drawn += some
    os.close(ours)
    assert run.wait() == 0
    said = (
        (tmp_path / "printed").read_text()
        if printed_to == "a file"
        else re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode()).replace("\r\n", "\n")
    )
    assert (
        f"    listed in {tmp_path}/data/inferred-contracts.csv: a file with address, is_erc20, is_erc721 "
        "corrects them\n" in said
    )
    assert "1 row read: 1 ERC20 transfer (1 contract), 1 of them new.\n" in said
    assert ("reading" in drawn.decode(), "1 row read" in drawn.decode()) == (
        True,
        printed_to == "the terminal",
    )


def test_bad_rows_are_shown_and_the_command_says_that_there_were_some(tmp_path, log, capsys):
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 10**20), log(0, 2, "1e18")])
    code = main(["ingest", str(path), "--chain", "1", "--data", str(tmp_path / "data")])
    printed = capsys.readouterr().out
    assert code == 1
    assert "1 bad row skipped:" in printed
    assert f"{path}, row 2: value is not a whole number from 0 to 2**256-1: '1e18'" in printed
    assert f"full list: {tmp_path / 'data' / 'bad-rows.csv'}" in printed


def test_a_file_that_cannot_be_used_is_one_line_on_stderr(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert (
        main(["ingest", str(tmp_path / "a.csv"), "--chain", "1", "--data", str(tmp_path / "data")])
        == 2
    )
    said = capsys.readouterr().err
    assert said.startswith(f"IngestError: {tmp_path / 'a.csv'}: no known format has any of these")
    assert said.count("\n") == 1


def test_a_snapshots_token_is_named_by_an_option(tmp_path, capsys):
    path = tmp_path / "export-tokenholders-fxs.csv"
    path.write_text(
        f'"HolderAddress","Balance","PendingBalanceUpdate"\n"{wallet(1)}","1E-18","No"\n'
    )
    code = main(
        [
            "ingest",
            str(path),
            "--chain",
            "1",
            "--data",
            str(tmp_path / "data"),
            "--block",
            "12000000",
            "--token",
            f"FXS={wallet(1000)}",
            "--decimals",
            "18",
        ]
    )
    assert code == 0
    with Tables(tmp_path / "data") as tables:
        assert tables.balances() == {(wallet(1000), wallet(1)): 1}


@pytest.mark.parametrize(
    "given",
    [
        ["--token", "UNI"],
        ["--decimals", "6"],
        ["--unit", "raw"],
        ["--block", "5"],
        ["--date", "2025-01-31"],
        ["--date-format", "%d/%m/%Y"],
    ],
)
def test_an_option_that_no_file_is_read_by_is_refused(tmp_path, log, capsys, given):
    path = write_parquet(tmp_path / "t.parquet", [log(0, 1, 5)], block_timestamp=[1_600_000_000])
    command = ["ingest", str(path), "--chain", "ethereum", "--data", str(tmp_path / "data")]
    assert main([*command, *given]) != 0
    said = f"ValidationError: {given[0]}: no file here is read by it. Leave it out.\n"
    assert capsys.readouterr().err == said
    assert main(command) == 0
    # A file that is skipped may have needed it; with dates of another form it is read again.
    assert main([*command, *given]) == (2 if "--date-format" in given else 0)


@pytest.mark.parametrize("given", ["0x12", "FXS=", "FXS=abc"])
def test_a_token_that_is_no_address_is_refused(tmp_path, capsys, given):
    assert main(["ingest", "x.csv", "--data", str(tmp_path / "data"), "--token", given]) == 2
    assert (
        "is not an address. Write --token 0x... or --token SYMBOL=0x..." in capsys.readouterr().err
    )


def test_two_tokens_of_one_symbol_or_of_none_are_refused(tmp_path, capsys):
    for symbol, which in (("", "of files that name none"), ("FXS=", "of the symbol 'FXS'")):
        tokens = [f"--token={symbol}{wallet(n)}" for n in (1000, 2000)]
        assert main(["ingest", "x.csv", "--data", str(tmp_path / "data"), *tokens]) == 2
        assert (
            f"--token: two tokens are given {which}. Leave one of them out."
            in capsys.readouterr().err
        )


@pytest.mark.parametrize("given", ["abc", "4", "50%", "1KB"])
def test_a_memory_that_is_no_size_is_refused_and_no_file_is_blamed(tmp_path, log, capsys, given):
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 5)])
    code = main(
        ["ingest", str(path), "--chain", "1", "--data", str(tmp_path / "data"), "--memory", given]
    )
    assert code == 2
    assert (
        capsys.readouterr().err
        == f"ValidationError: memory: {given!r} is not a memory size. Write 800MB or 4GB.\n"
    )


@pytest.mark.parametrize("option", ["s3://bucket/x", "gs://bucket/x", "hdfs://name:9000/x"])
def test_a_url_is_no_data_folder(option, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["ingest", "x.csv", "--data", option]) == 2
    assert capsys.readouterr().err == (
        f"UsageError: --data: '{option}' is a URL, which only a cluster writes to. Add --engine spark://HOST:PORT, or "
        "name a folder of this machine.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_token_whose_checksum_does_not_match_is_refused_with_the_right_one(tmp_path, capsys):
    given = "0x1f9840a85d5aF5bf1D1762F925BDADdC4201F985"
    assert (
        main(["ingest", "x.csv", "--data", str(tmp_path / "data"), "--token", f"UNI={given}"]) == 2
    )
    assert f"The checksum of {given} does not match" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_columns_of_any_name_are_mapped_to_those_of_a_known_format(tmp_path, capsys):
    path, data = tmp_path / "own.csv", str(tmp_path / "data")
    fields = [wallet(1000), wallet(0), wallet(1), str(10**20), "0x" + "1" * 64, "0", "100"]
    path.write_text("Coin,source,target,amount,txid,position,height\n" + ",".join(fields) + "\n")
    names = (
        "token_address",
        "from_address",
        "to_address",
        "value",
        "transaction_hash",
        "log_index",
        "block_number",
    )
    pairs = ",".join(
        f"{theirs}={ours}"
        for theirs, ours in zip(
            ("coin", "source", "target", "amount", "txid", "position", "Height"), names, strict=True
        )
    )
    assert main(["ingest", str(path), "--chain", "1", "--data", data]) == 2
    assert "map them: --map theirs=ours" in capsys.readouterr().err
    assert main(["ingest", str(path), "--chain", "1", "--data", data, "--map", pairs]) == 0
    with Tables(tmp_path / "data") as tables:
        assert tables.balances() == {
            (wallet(1000), wallet(0)): -(10**20),
            (wallet(1000), wallet(1)): 10**20,
        }


def test_a_map_to_no_column_of_ours_is_refused_with_the_nearest(tmp_path, capsys):
    assert main(["ingest", "x.csv", "--data", str(tmp_path / "data"), "--map", "coin=valu"]) == 2
    assert (
        "does not name a column of a known format. Did you mean 'value'?" in capsys.readouterr().err
    )


def test_metadata_alone_answers_look_ups_and_a_segment_of_it_says_what_is_missing(data, tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text(
        f"address,symbol,name,decimals,standard\n{wallet(1)},ABC,A B C,6,ERC20\n"
        f"{wallet(2)},APE,Apes,,ERC721\n"
    )
    take(data, path)
    with closing(open_dataset(data)) as dataset:
        token, collection = (
            metadata.contract(dataset, chain_of(1), "abc", nft=False),
            metadata.contract(dataset, chain_of(1), wallet(2), nft=True),
        )
        assert (token["name"], token["decimals"], token["holders"], token["asOf"]) == (
            "A B C",
            6,
            None,
            None,
        )
        assert (collection["name"], collection["tokenType"], collection["transfers"]) == (
            "Apes",
            "ERC721",
            None,
        )
        found = metadata.search_page(dataset, {"searchTerm": "apes"})
        assert found["items"][0]["address"] == wallet(2)
        with pytest.raises(InvalidSegment) as caught:
            language.resolve(
                language.parse({"operator": "AND", "filters": {"token": {"token": "ABC"}}}), dataset
            )
    assert caught.value.errors == [
        {
            "pointer": "/filters/chain",
            "code": "chain",
            "detail": "The data has metadata only: no transfers or holders are ingested.",
        }
    ]
