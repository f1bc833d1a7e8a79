"""Lists of wallets in cells: columns, sets and files of any length, sent once, and told shortly."""

from __future__ import annotations

import json
import os

import pandas as pd
import pytest

from nbext.notebook import session as sessions
from nbext.settings import service_folder


def cell(given):
    return '%%segment_query who --limit 5\n{"wallet": {"in": ' + given + '}, "exclude": []}'


@pytest.fixture
def owners(shell):
    """The owners of a collection in the sample, and as many strangers as make a long list."""
    found = shell.value('%segment --limit 5000 {"nft": {"nft": "BAYC"}}')["address"]
    return [*found, *("0x" + os.urandom(20).hex() for _ in range(5_000))]


def test_every_column_set_and_frame_is_a_list(shell, owners):
    numpy, polars, pyarrow = (pytest.importorskip(name) for name in ("numpy", "polars", "pyarrow"))
    kinds = {
        "plain": owners,
        "row": tuple(owners),
        "some": set(owners),
        "column": pd.Series(owners),
        "objects": pd.Series(owners, dtype=object),
        "categories": pd.Series(owners, dtype="category"),
        "labels": pd.Index(owners),
        "array": numpy.array(owners),
        "arrow": pyarrow.array(owners),
        "chunks": pyarrow.chunked_array([owners[:9], owners[9:]]),
        "rust": polars.Series(owners),
        "frame": pd.DataFrame({"address": owners, "score": 1}),
        "upper": ["0x" + one[2:].upper() for one in owners],
        "table": pyarrow.table(
            {"address": [bytes.fromhex(one[2:]) for one in owners], "score": [1] * len(owners)}
        ),
        "twice": [*owners, *owners],
    }
    shell.ip.user_ns.update(kinds)
    told = {}
    for name in kinds:
        shell.value(cell("{{" + name + "}}"))
        about = shell.ip.user_ns["who"].attrs["nbext"]
        told[name] = about["segment_id"], about["matched"], about["filters"]["wallet"]["list"]
    assert len(set(told.values())) == 1
    assert told["plain"][1] == len(owners) - 5_000
    listed = told["plain"][2]
    assert about["lists"] == {listed: f"{len(owners):,} wallets of {{{{twice}}}} ({listed})"}
    shell.ip.user_ns["short"] = owners[:1_000]
    shell.value(cell("{{short}}"))
    assert shell.ip.user_ns["who"].attrs["nbext"]["filters"]["wallet"] == {
        "in": sorted(owners[:1_000])
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("allow.csv", "address\n{}\n"),
        ("excel.CSV", "\ufeffName;Wallet Address;Score\r\n{};1\r\n"),
        ("holders.csv", '"HolderAddress","Balance"\n{},"1,000"\n'),
        ("bare.csv", "{}\n"),
        ("allow.txt", "\n{}\n\n"),
    ],
)
def test_a_file_beside_the_notebook_is_a_list(shell, owners, tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    separator = {"excel.CSV": ";1\r\nAnn;", "holders.csv": ',"1,000"\n'}.get(name, "\n")
    rows = separator.join(owners)
    (tmp_path / name).write_text(
        text.format(f"Bob;{rows}" if name == "excel.CSV" else rows), "utf-8"
    )
    shell.value(cell(f'"@{name}"'))
    about = shell.ip.user_ns["who"].attrs["nbext"]
    assert about["matched"] == len(owners) - 5_000
    assert str(tmp_path) not in str(about)
    assert next(iter(about["lists"].values())).startswith(
        f"{len(owners):,} wallets of @{name} (ls_"
    )


def test_a_parquet_file_is_a_list_and_a_short_file_stays_in_the_request(
    shell, owners, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"n": 1, "address": owners}).to_parquet("allow.parquet")
    (tmp_path / "few.txt").write_text("\n".join(owners[:3]), "utf-8")
    shell.value(cell('"@allow.parquet"'))
    assert shell.ip.user_ns["who"].attrs["nbext"]["matched"] == len(owners) - 5_000
    shell.value(cell('"@few.txt"'))
    assert shell.ip.user_ns["who"].attrs["nbext"]["filters"]["wallet"] == {"in": sorted(owners[:3])}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('"@none.csv"', "@none.csv cannot be read: there is no such file in {here}."),
        (
            '"@allow.xlsx"',
            "'@allow.xlsx' is not a list. Write @FILE.csv, @FILE.txt, @FILE.json, @FILE.parquet, @FILE.arrow.",
        ),
        (
            '"@two.csv"',
            "Its columns are 'from_address', 'to_address': which has the addresses? "
            'Name one of them "address", or give that column alone.',
        ),
        (
            "{{pairs}}",
            "Its columns are 'a', 'b': which has the addresses? "
            'Name one of them "address", or give that column alone.',
        ),
    ],
)
def test_what_is_no_list_is_said_below_a_caret(shell, tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.csv").write_text("from_address,to_address\n0x,0x\n")
    shell.ip.user_ns["pairs"] = pd.DataFrame({"a": ["x"], "b": ["y"]})
    error = shell.error(cell(given))
    assert error.splitlines() == [
        f"InvalidSegment: /filters/wallet/in: {message.format(here=tmp_path)}",
        "  line 2, column 13:",
        f'    {{"wallet": {{"in": {given}}}, "exclude": []}}',
        "                ^",
    ]


def test_every_row_that_is_no_address_is_named_before_anything_is_sent(shell, owners):
    wrong = {
        3: "vitalik.eth",
        7: None,
        11: "0x" + "12" * 19,
        4_000: "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045",
        5_003: 5,
    }
    column = pd.Series([wrong.get(at, one) for at, one in enumerate(owners)], dtype=object)
    shell.ip.user_ns["allow"] = column[3:]
    assert shell.error(cell("{{allow}}")) == (
        "InvalidSegment: /filters/wallet/in: 4 of 5,199 values of {{allow}} are not addresses. Nothing was sent. "
        "Rows are counted from 0.\n"
        "  row 0 (index 3): 'vitalik.eth' is an ENS name. nbext does not resolve names; give the 0x... address.\n"
        "  row 8 (index 11): '0x12121212121212121212121212121212121212' is not an address. "
        "An address is 0x and 40 hex digits.\n"
        "  row 3997 (index 4000): The checksum of 0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045 does not match: a letter "
        "may be mistyped. If the digits are right, write 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045.\n"
        "  row 5000 (index 5003): '5' is not an address. An address is 0x and 40 hex digits.\n"
        "  line 2, column 13:\n"
        '    {"wallet": {"in": {{allow}}}, "exclude": []}\n'
        "                ^"
    )
    # A plain list has no labels; a short one is checked alike.
    error = shell.error(cell('{{["0x1", *allow[9:20]]}}')).splitlines()
    said = " is not an address. Nothing was sent. Rows are counted from 0."
    assert (
        error[0]
        == 'InvalidSegment: /filters/wallet/in: 1 of 12 values of {{["0x1", *allow[9:20]]}}' + said
    )
    assert error[1] == "  row 0: '0x1' is not an address. An address is 0x and 40 hex digits."


def test_a_file_names_its_lines(shell, owners, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f'{at},{one},"a\nb"' for at, one in enumerate(owners)]
    rows[2] = f'2,{owners[2][:-1]},"a\nb"'
    rows[5:] = ["", *(f"{at},x{at}," for at in range(30))]
    (tmp_path / "allow.csv").write_text("n,address,note\n" + "\n".join(rows), "utf-8")
    lines = shell.error(cell('"@allow.csv"')).splitlines()
    assert lines[0] == (
        "InvalidSegment: /filters/wallet/in: 31 of 35 values of @allow.csv are not addresses. Nothing was sent."
    )
    assert lines[1].startswith(f"  line 6: '{owners[2][:-1]}' is not an address.")
    assert [line.split("'")[:2] for line in lines[2:21]] == [
        [f"  line {13 + at}: ", f"x{at}"] for at in range(19)
    ]
    assert lines[21] == "  and 11 more"


def test_a_list_is_sent_once_and_again_when_the_service_has_deleted_it(shell, owners):
    shell.ip.user_ns["allow"] = owners
    shell.value(cell("{{allow}}"))
    client = sessions.current_session().connected()
    folder = service_folder(sessions.current_session().data_dir, notebook=True)
    (listed,) = shell.ip.user_ns["who"].attrs["nbext"]["lists"]
    stored = list(folder.rglob(listed))
    assert len(stored) == 1
    changed = stored[0].stat().st_ino
    shell.value('%%segment_query again\n{"wallet": {"in": {{allow}}}, "nft": {"nft": "BAYC"}}')
    assert stored[0].stat().st_ino == changed, "it was not sent again"
    stored[0].unlink()
    shell.value('%%segment_query --limit 7\n{"wallet": {"in": {{allow}}}, "nft": {"nft": "BAYC"}}')
    assert stored[0].stat().st_size == 20 * len(owners)
    assert client.about()["links"]["lists"] == "/lists"


def test_a_dry_run_and_the_history_and_a_saved_query_tell_a_list_shortly(shell, owners):
    shell.ip.user_ns["allow"] = owners
    printed = shell.run('%%segment_query --dry-run\n{"wallet": {"in": {{allow}}}}').printed
    shell.value(cell("{{allow}}"))
    about = shell.ip.user_ns["who"].attrs["nbext"]
    ((listed, summary),) = about["lists"].items()
    assert summary == f"5,202 wallets of {{{{allow}}}} ({listed})"
    assert f'"filters": {{"wallet": {{"list": "{listed}"}}}},' in printed
    assert f"The service stores the list: {summary}.\n" in printed
    assert f"Valid. In words: wallets that are in a list of 5,202 wallets ({listed})\n" in printed
    filters = shell.value("%nbext history")["filters"].iloc[-1]
    assert json.loads(filters) == {"wallet": {"in": summary}, "exclude": []}
    # It can be run again, from the history and saved, for as long as the service has the list.
    assert shell.value("%nbext history 2 -o again") is None
    shell.value("%nbext save allowed")
    assert shell.value("%%segment_query again --from allowed") is None
    # Other tests share the folder, and one of them has nothing saved.
    (sessions.current_session().data_dir / "queries" / "allowed.json").unlink()
    assert shell.ip.user_ns["again"].attrs["nbext"]["segment_id"] == about["segment_id"]
    folder = service_folder(sessions.current_session().data_dir, notebook=True)
    next(folder.rglob(listed)).unlink()
    assert shell.error("%nbext history 2") == (
        f"InvalidSegment: /filters: The service deleted the list {summary}. Run its cell again."
    )


def test_a_list_that_changes_while_its_segment_runs_is_the_one_of_the_cell(shell, owners):
    shell.ip.user_ns["allow"] = pd.Series(owners)
    shell.run(
        '%%segment_query later --bg --limit 5\n{"wallet": {"in": {{allow}}}, "exclude": []}\n'
    )
    shell.ip.user_ns["allow"][:] = "gone"
    assert shell.ip.user_ns["later"].result(60).attrs["nbext"]["matched"] == len(owners) - 5_000
    error = shell.error('%%segment_query later --bg\n{"wallet": {"in": {{allow}}}}')
    assert error.splitlines()[0] == (
        "InvalidSegment: /filters/wallet/in: 5,202 of 5,202 values of {{allow}} are not addresses. Nothing was sent. "
        "Rows are counted from 0."
    )


def test_a_request_from_python_has_lists_too(shell, owners):
    shell.ip.user_ns.update(query={"wallet": {"in": pd.Series(owners)}, "exclude": []})
    whole = shell.value("%segment {{query}} --limit 5")
    assert whole.attrs["nbext"]["matched"] == len(owners) - 5_000
    direct = (
        sessions.current_session().connected().execute_segment(shell.ip.user_ns["query"], limit=5)
    )
    assert direct.attrs["nbext"]["segment_id"] == whole.attrs["nbext"]["segment_id"]
