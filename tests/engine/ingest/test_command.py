"""``nbext ingest``: what it prints and how it ends."""

from __future__ import annotations

import pytest

from nbext.cli import main
from tests.engine.ingest.conftest import write_csv, write_parquet
from tests.engine.ingest.reading_back import Tables, wallet


def test_a_run_prints_what_it_took_and_ends_well(tmp_path, log, capsys, contracts_file):
    made = [log(0, 1, 10**20), log(1, 1, 5), log(1, 0, 0), log(0, 2, 7, contract=2000)]
    path = write_parquet(tmp_path / "t.parquet", made)
    code = main(["ingest", str(path), str(contracts_file), "--chain", "eth", "--data", str(tmp_path / "data")])
    printed = capsys.readouterr().out.splitlines()
    assert code == 0
    assert printed[:3] == [
        f"{contracts_file}: contracts (ethereum-etl), 2 rows, ethereum",
        f"{path}: token_transfers (ethereum-etl), 4 rows, ethereum",
        "6 rows read: 3 ERC20 transfers (1 contract) and 1 NFT transfer (1 contract), 4 of them new.",
    ]
    assert printed[3:-1] == [
        "  1 transfer from a wallet to itself",
        "  1 ERC20 transfer of zero",
        "  2 mints (from the zero address)",
        "  1 burn (to the zero address)",
        "  1 ERC20 contract with unknown decimals (query it with `unit: raw`)",
    ]
    assert printed[-1].startswith("Now serving generation 000001-")


def test_bad_rows_are_shown_and_the_command_says_that_there_were_some(tmp_path, log, capsys):
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 10**20), log(0, 2, "1e18")])
    code = main(["ingest", str(path), "--chain", "1", "--data", str(tmp_path / "data")])
    printed = capsys.readouterr().out
    assert code == 1
    assert "1 bad row skipped:" in printed
    assert f"{path}, row 2: value is not a whole number from 0 to 2**256-1: '1e18'" in printed
    assert f"full list: {tmp_path / 'data' / 'bad-rows.csv'}" in printed


def test_a_file_that_cannot_be_used_is_one_line_on_stderr(tmp_path, capsys):
    (tmp_path / "a.csv").touch()
    assert main(["ingest", str(tmp_path / "a.csv"), "--chain", "1", "--data", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err == f"IngestError: {tmp_path / 'a.csv'}: the file is empty (0 bytes).\n"


def test_a_snapshots_token_is_named_by_an_option(tmp_path, capsys):
    path = tmp_path / "export-tokenholders-fxs.csv"
    path.write_text(f'"HolderAddress","Balance","PendingBalanceUpdate"\n"{wallet(1)}","1E-18","No"\n')
    code = main(["ingest", str(path), "--chain", "1", "--data", str(tmp_path / "data"), "--block", "12000000",
                 "--token", f"FXS={wallet(1000)}", "--decimals", "18"])
    assert code == 0
    with Tables(tmp_path / "data") as tables:
        assert tables.balances() == {(wallet(1000), wallet(1)): 1}


@pytest.mark.parametrize("given", ["0x12", "FXS=", "FXS=abc"])
def test_a_token_that_is_no_address_is_refused(tmp_path, capsys, given):
    assert main(["ingest", "x.csv", "--data", str(tmp_path / "data"), "--token", given]) == 2
    assert "is not an address. Write --token 0x... or --token SYMBOL=0x..." in capsys.readouterr().err


@pytest.mark.parametrize("given", ["abc", "4", "50%", "1KB"])
def test_a_memory_that_is_no_size_is_refused_and_no_file_is_blamed(tmp_path, log, capsys, given):
    path = write_csv(tmp_path / "t.csv", [log(0, 1, 5)])
    code = main(["ingest", str(path), "--chain", "1", "--data", str(tmp_path / "data"), "--memory", given])
    assert code == 2
    assert capsys.readouterr().err == f"ValidationError: memory: {given!r} is not a memory size. Write 800MB or 4GB.\n"
