"""The client and our own service, end to end, on the synthetic sample."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import subprocess
import sys
import threading
import warnings
from decimal import Decimal

import duckdb
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import nbext
from nbext.client.frames import frame_as_of
from nbext.client.writer import Target
from nbext.core.wire import NFT_FIELDS, SEARCH_FIELDS, SEGMENT_FIELDS, SIGN_UP_FIELDS, TOKEN_FIELDS
from nbext.embedded import connect, start_service
from nbext.engine.ingest import ingest
from nbext.engine.ingest.derive.snapshots import SnapshotOptions
from nbext.engine.query import answers
from nbext.errors import AmbiguousSymbol, InvalidSegment, NotFound, ServiceDied, ValidationError
from nbext.settings import Settings

pytest.importorskip("duckdb")
UNI = {"token": {"token": "UNI", "balance": {"min": "10"}}}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """A client of the embedded service on fresh sample data."""
    folder = tmp_path_factory.mktemp("embedded")
    (folder / "pyproject.toml").write_text("")
    settings = Settings(arguments={"data_dir": str(folder / "data")}, environ={}, folder=folder)
    client = connect(settings=settings)
    yield client
    from nbext import embedded

    embedded.start_service(folder / "data").stop()


def test_the_package_offers_its_functions():
    assert nbext.connect is connect
    assert nbext.Client is type(nbext.Client("https://h.example", "key"))


def test_the_embedded_service_is_ours_and_says_whose_data_it_has(embedded):
    assert embedded.is_ours
    assert embedded.about()["data"]["synthetic"] is True
    assert embedded.schema()["$schema"].startswith("https://json-schema.org/")


def test_a_table_stands_for_its_segment_and_is_no_conditions(embedded):
    rows = embedded.execute_segment({"token": {"token": "UNI"}}, limit="all")
    assert embedded.segment(rows)["id"].tolist() == [rows.attrs["nbext"]["segment_id"]]
    pd.testing.assert_frame_equal(embedded.export_csv(rows), rows)
    with pytest.raises(ValidationError) as caught:
        embedded.export_csv(rows.head())
    assert "id: The table has 5 rows, and its segment's had 1,002. Give its id" in str(caught.value)
    with pytest.raises(InvalidSegment) as caught:
        embedded.execute_segment(rows)
    assert str(caught.value) == (
        '/filters: Expected an object of conditions, got DataFrame. Its wallets are {"wallet": {"in": table}}.'
    )
    with pytest.raises(ValidationError, match='to 10,000,000, or "all"'):
        embedded.execute_segment({"token": {"token": "UNI"}}, limit="many")


def test_who_asks_in_python_is_warned_of_what_a_magic_prints(embedded):
    everyone = {"token": {"token": "UNI"}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nbext.AnswerWarning)
        short = embedded.execute_segment(everyone)
        embedded.export_csv(short.attrs["nbext"]["segment_id"])
        nbext.overlap([short, "BAYC"], client=embedded)
        embedded.tokens("ethereum", ["UNI", "NOSUCH", "NOSUCH"])
    assert [(str(one.message), one.filename) for one in caught] == [
        ('1,000 of 1,002 wallets; limit="all" fetches all, limit=0 counts', __file__),
        ("1,000 of 1,002 wallets", __file__),
        (
            'BAYC: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.',
            __file__,
        ),
        (
            f"{short.attrs['nbext']['segment_id']} was saved with limit 1,000: all 1,002 wallets that match are taken.",
            __file__,
        ),
        (
            "2 of 3 rows failed: NOSUCH: The data has no token with the symbol 'NOSUCH' on ethereum.",
            __file__,
        ),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(embedded.execute_segment(everyone, limit="all")) == 1002
        assert len(embedded.execute_segment(everyone, limit=None)) == 1002
        assert len(embedded.execute_segment(everyone, limit=0)) == 0


def test_a_named_folder_without_data_is_not_taken_for_one_with_data(tmp_path, monkeypatch):
    settings = Settings(arguments={"data_dir": str(tmp_path / "typo")}, environ={})
    said = f"{tmp_path / 'typo'} has no ingested data. The synthetic sample answers, with wallets that nobody has."
    monkeypatch.setenv("NBEXT_DATA_DIR", str(tmp_path / "typo"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        connect(settings=settings)
        nbext.overlap(["UNI", "USDC"])
    assert [str(one.message) for one in caught] == [said, said]
    ingest(
        [_holders(tmp_path)],
        "base",
        tmp_path / "typo",
        options=SnapshotOptions(decimals=0, block=5),
    )
    monkeypatch.delenv("NBEXT_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not connect(settings=settings).about()["data"]["synthetic"]
        # Nobody named that of the user.
        assert connect().about()["data"]["synthetic"]
    for folder in ("typo", "nbext"):
        start_service(tmp_path / folder).stop()


def _holders(folder):
    path = folder / "holders.csv"
    path.write_text(f"contract,holder,balance\n0x{5:040x},0x{6:040x},7\n")
    return path


def test_the_burn_address_is_named_wherever_a_number_has_it_or_leaves_it_out(embedded):
    said = '{}: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.'
    owners = embedded.nfts("ethereum", ["BAYC", "MAYC"])
    assert owners.attrs["nbext"]["warnings"] == [
        "ownerCount counts the burn address 0x...dEaD, too; segments leave it out."
    ]
    for name, number in zip(owners["symbol"], owners["ownerCount"], strict=True):
        about = embedded.execute_segment({"nft": {"nft": name}}, limit=0).attrs["nbext"]
        assert (about["matched"], about["warnings"]) == (number - 1, [said.format(name)])
    # Together they are of nobody that is burned, and one of them alone is.
    both = {"nft": {"nft": "BAYC"}, "token": {"token": "UNI"}}
    assert embedded.execute_segment(both, limit=0).attrs["nbext"]["warnings"] == []
    steps = nbext.funnel(both, client=embedded)
    alone = dict(zip(steps["condition"], steps["alone"], strict=True))
    assert alone["own BAYC on ethereum"] == owners["ownerCount"][0] - 1
    assert steps.attrs["nbext"]["warnings"] == [said.format("BAYC")]
    chosen = nbext.funnel({**both, "exclude": ["burn"]}, client=embedded)
    assert chosen.attrs["nbext"]["warnings"] == []


def test_a_symbol_in_an_analysis_is_of_the_chain_that_is_set(embedded):
    there = {**embedded.settings.arguments, "chain": "arbitrum"}
    client = connect(settings=Settings(arguments=there, environ={}))
    token = {"token": {"token": "UNI"}, "chain": "arbitrum"}
    number = embedded.execute_segment(token, limit=0).attrs["nbext"]["matched"]
    assert nbext.overlap({"UNI": "UNI"}, client=client).loc["UNI", "UNI"] == number
    assert nbext.overlap({"UNI": "UNI"}, client=embedded).loc["UNI", "UNI"] == 1002
    assert len(nbext.trend("UNI", every="1w", since="4w", client=client)) == 5
    with pytest.raises(ValidationError, match="no collection 'BAYC' on arbitrum"):
        nbext.overlap(["BAYC"], client=client)


def test_a_segment_is_the_same_rows_by_every_way(embedded, tmp_path):
    table = embedded.execute_segment(UNI, limit=50)
    told = table.attrs["nbext"]
    assert (len(table), told["returned"], told["truncated"], told["operator"]) == (
        50,
        50,
        True,
        "AND",
    )
    assert table["address"].is_monotonic_increasing
    for other in (
        embedded.execute_segment(UNI, limit=50, file_type="csv"),
        embedded.export_json(told["segment_id"]),
        embedded.export_csv(told["segment_id"]),
    ):
        pd.testing.assert_frame_equal(other, table)
    embedded.export_csv(told["segment_id"], to=tmp_path / "rows.parquet")
    kept = pd.read_parquet(tmp_path / "rows.parquet")
    assert kept["address"].tolist() == table["address"].tolist()


def test_an_answer_without_rows_says_which_condition_leaves_none(embedded):
    filters = {
        **UNI,
        "nft": {"nft": "BAYC"},
        "transfer": {"direction": "mint", "token": "USDC", "count": {"min": 99}},
    }
    alone = [
        embedded.execute_segment({key: one}, limit=0).attrs["nbext"]["matched"]
        for key, one in filters.items()
    ]
    both = embedded.execute_segment({**UNI, "nft": {"nft": "BAYC"}}, limit=0).attrs["nbext"][
        "matched"
    ]
    for limit in (0, 10):
        none = embedded.execute_segment(filters, limit=limit)
        assert (len(none), none.attrs["nbext"]["matched"]) == (0, 0)
        each, together = none.attrs["nbext"]["warnings"]
        start = f"No wallet matches. Each condition alone: {alone[0]:,} hold at least 10 UNI on ethereum; "
        assert each.startswith(
            f"{start}{alone[1]:,} own BAYC on ethereum; {alone[2]:,} were minted "
        )
        left = f"{alone[0]:,}, then {both:,}, then 0: nobody is left with "
        assert together.startswith(f"Together, in this order: {left}")
    assert embedded.segment(none.attrs["nbext"]["segment_id"])["warnings"].iloc[0] == [
        each,
        together,
    ]
    either = embedded.execute_segment(filters, "OR", limit=1).attrs["nbext"]["warnings"]
    assert either == [
        'BAYC: the burn address 0x...dEaD is a holder too, and is left out. "exclude": [] includes it.'
    ]


def test_the_largest_holders_come_first_of_all_that_match(embedded):
    whole = embedded.execute_segment({"token": {"token": "UNI"}}, limit=100_000)
    wanted = whole.assign(exactly=whole["UNI_balance_raw"].map(int)).sort_values(
        ["exactly", "address"], ascending=[False, True]
    )
    for name in ("UNI_balance", "UNI_balance_raw"):
        top = embedded.execute_segment(
            {"token": {"token": "UNI"}, "orderBy": f"-{name}"}, limit=100
        )
        assert top["address"].tolist() == wanted["address"].tolist()[:100]
        assert top.attrs["nbext"]["matched"] == len(whole)
    assert (
        "ordered by UNI_balance, largest first"
        in embedded.explain({**UNI, "orderBy": "-UNI_balance"})["words"]
    )


def test_an_explanation_runs_no_condition_unless_their_counts_are_asked_for(embedded):
    both = {**UNI, "nft": {"nft": "BAYC"}}
    keys = ["id", "words", "canonical", "asOf", "chains", "warnings", "sql", "plan"]
    assert list(embedded.explain(both)) == keys
    counted = [
        embedded.execute_segment({key: one}, limit=0).attrs["nbext"]["matched"]
        for key, one in both.items()
    ]
    assert [one["matched"] for one in embedded.explain(both, parts=True)["parts"]] == counted


def test_a_share_is_the_float_nearest_to_the_quotient_of_two_whole_numbers(embedded):
    supply = embedded.tokens("ethereum", "UNI")["totalSupply"].map(int)[0]
    for as_of in ({}, {"asOf": "2025-06-30"}):
        asked = {"token": {"token": "UNI"}, "columns": ["share"], "exclude": [], **as_of}
        table = embedded.execute_segment(asked, limit="all")
        assert list(table) == ["address", "UNI_balance", "UNI_share", "UNI_balance_raw"]
        exact = table["UNI_balance_raw"].map(int)
        # The sample's UNI is minted in its first block, and never burned.
        assert (exact.sum(), str(table["UNI_share"].dtype)) == (supply, "float64")
        assert table["UNI_share"].tolist() == [one / supply for one in exact]
        assert table.attrs["nbext"]["columns"][2]["supply"] == str(supply)
        found = table.attrs["nbext"]["segment_id"]
        for other in (embedded.export_csv(found), embedded.export_json(found)):
            pd.testing.assert_frame_equal(other, table)
        by_share = embedded.execute_segment({**asked, "orderBy": "-UNI_share"}, limit="all")
        by_amount = embedded.execute_segment({**asked, "orderBy": "-amount"}, limit="all")
        pd.testing.assert_frame_equal(by_share, by_amount)
    owned = embedded.execute_segment({"nft": {"nft": "BAYC"}, "columns": ["share"]}, limit="all")
    assert list(owned) == ["address", "BAYC_share", "BAYC_count"]
    number = embedded.nfts("ethereum", "BAYC")["totalSupply"].map(int)[0]
    assert (owned["BAYC_share"] == owned["BAYC_count"] / number).all()


def test_who_received_a_token_comes_with_how_much_how_often_and_when(embedded):
    names = ["transferred", "transferCount", "firstTransfer", "lastTransfer"]
    asked = {"direction": "in", "token": "USDC", "after": "90d"}
    table = embedded.execute_segment(
        {"transfer": asked, "columns": names, "orderBy": "-amount"}, limit="all"
    )
    assert table.dtypes.astype(str).to_dict() == {
        "address": "str",
        "transferred": "float64",
        "transferred_raw": "decimal128(38, 0)[pyarrow]",
        "transferCount": "int64",
        "firstTransfer": "datetime64[s, UTC]",
        "lastTransfer": "datetime64[s, UTC]",
    }
    assert table["transferred_raw"].map(int).is_monotonic_decreasing
    # The same numbers as bounds of the condition: each wallet alone is matched by its own, and not by one more.
    for row in table.head(3).itertuples():
        exactly = {"min": str(int(row.transferred_raw)), "max": str(int(row.transferred_raw))}
        one = {**asked, "unit": "raw", "total": exactly, "count": {"min": row.transferCount}}
        assert (
            row.address
            in embedded.execute_segment({"transfer": one}, limit="all")["address"].tolist()
        )
    found = table.attrs["nbext"]["segment_id"]
    for other in (embedded.export_csv(found), embedded.export_json(found)):
        pd.testing.assert_frame_equal(other, table)


@pytest.mark.parametrize("sign", ["", "-"])
def test_more_rows_than_are_ordered_at_once_have_the_same_order(embedded, monkeypatch, sign):
    asked = {"token": {"token": "UNI"}, "columns": ["transfers"], "orderBy": f"{sign}UNI_balance"}
    at_once = embedded.execute_segment(asked, limit=999)
    monkeypatch.setattr(answers, "CHUNK", 7)
    # Another limit is another segment.
    piece_by_piece = embedded.execute_segment(asked, limit=998)
    pd.testing.assert_frame_equal(piece_by_piece, at_once.head(998))


def test_the_month_in_which_holders_were_first_seen_is_one_query_by_every_way(embedded, tmp_path):
    filters = {
        "nft": {"nft": "BAYC"},
        "columns": ["firstSeen", "lastSeen", "transfers", "activeDays"],
    }
    table = embedded.execute_segment(filters, limit=1000)
    types = ["str", "int64", "datetime64[s, UTC]", "datetime64[s, UTC]", "int64", "int64"]
    assert table.dtypes.astype(str).tolist() == types
    assert (table["firstSeen"] <= table["lastSeen"]).all()
    assert (table["activeDays"] <= table["transfers"]).all()
    months = table["firstSeen"].dt.strftime("%Y-%m").value_counts()
    assert (months.sum(), months.index.str.fullmatch(r"20\d\d-\d\d").all()) == (len(table), True)
    early = {"activity": {"first": {"before": "2022-01-31T23:59:59Z"}}}
    assert embedded.execute_segment({**filters, **early}, limit=0).attrs["nbext"]["matched"] == sum(
        months[months.index <= "2022-01"]
    )
    found = table.attrs["nbext"]["segment_id"]
    for other in (
        embedded.execute_segment(filters, limit=1000, file_type="csv"),
        embedded.export_json(found),
    ):
        pd.testing.assert_frame_equal(other, table)
    first = f"{table['firstSeen'].iloc[0]:%Y-%m-%dT%H:%M:%SZ}"
    for ending, read in (
        ("csv", pd.read_csv),
        ("json", pd.read_json),
        ("parquet", pd.read_parquet),
    ):
        embedded.export_csv(found, to=tmp_path / f"rows.{ending}")
        back = read(tmp_path / f"rows.{ending}")["firstSeen"]
        assert pd.to_datetime(back, utc=True).tolist() == table["firstSeen"].tolist()
        if ending != "parquet":
            assert first in (tmp_path / f"rows.{ending}").read_text()


def test_no_match_is_no_rows_with_the_same_columns(embedded):
    none = embedded.execute_segment({"token": {"token": "UNI", "balance": {"min": "999999999"}}})
    assert (len(none), list(none)) == (0, ["address", "UNI_balance", "UNI_balance_raw"])


def test_the_block_of_an_answer_is_typed_columns_and_missing_where_nothing_was_found(embedded):
    found = embedded.tokens("ethereum", ["UNI", "0x" + "1" * 40])
    names = list(found)
    assert names[-3:] == ["asOfBlock", "asOfTimestamp", "error"]
    assert found.dtypes[["asOfBlock", "asOfTimestamp"]].astype(str).tolist() == ["Int64", "str"]
    block = embedded.about()["data"]["chains"][0]["lastBlock"]
    assert found["asOfBlock"].tolist() == [block, pd.NA]
    assert found["asOfTimestamp"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").tolist() == [
        True,
        False,
    ]
    segment = embedded.execute_segment(UNI, limit=1).attrs["nbext"]["segment_id"]
    assert embedded.segment(segment)["asOfBlock"].tolist() == [block]


def test_a_limit_of_zero_only_counts(embedded):
    counted = embedded.execute_segment(UNI, limit=0)
    assert len(counted) == 0
    assert counted.attrs["nbext"]["matched"] == len(embedded.execute_segment(UNI, limit=1_000_000))


def test_every_operation_has_its_columns(embedded):
    segment = embedded.execute_segment(UNI, limit=1).attrs["nbext"]["segment_id"]
    assert list(embedded.segment(segment)) == list(frame_as_of([], SEGMENT_FIELDS))
    tokens = embedded.tokens("eth", ["UNI", "0x" + "9" * 40])
    assert list(tokens.drop(columns=["supply", "error"])) == list(frame_as_of([], TOKEN_FIELDS))
    assert list(tokens).index("supply") + 1 == list(tokens).index("totalSupply")
    assert tokens["supply"][0] == int(tokens["totalSupply"][0]) / 10**18 == 20_000_000
    assert tokens["supply"].isna().tolist() == [False, True]
    assert list(embedded.nfts("1", "BAYC")) == list(frame_as_of([], NFT_FIELDS))
    assert list(embedded.search_nfts("ape")) == list(SEARCH_FIELDS)
    assert list(embedded.sign_up("someone@example.com")) == list(SIGN_UP_FIELDS)


def test_what_the_service_refuses_is_the_error_of_its_field(embedded):
    with pytest.raises(InvalidSegment) as caught:
        embedded.execute_segment({"tokn": {"token": "UNI"}})
    assert caught.value.errors == [
        {
            "pointer": "/filters/tokn",
            "code": "unknown-key",
            "detail": "Unknown condition 'tokn'. Did you mean 'token'?",
        }
    ]
    with pytest.raises(ValidationError, match="Unknown chain 'etherum'"):
        embedded.tokens("etherum", "UNI")
    with pytest.raises(NotFound):
        embedded.tokens("eth", "NOPE")
    with pytest.raises(NotFound):
        embedded.segment("no-such-segment")


def test_metadata_that_is_known_is_not_asked_for_again(embedded, caplog):
    caplog.set_level("DEBUG", "urllib3")
    embedded.tokens("polygon", ["USDC", "WETH"])
    caplog.clear()
    embedded.tokens("polygon", ["USDC", "WETH"])
    asked = [record.getMessage() for record in caplog.records if "GET" in record.getMessage()]
    assert all("304" in line for line in asked)


def test_a_service_that_died_is_started_again_once_for_all(embedded):
    from nbext import embedded as door

    # Not simply the first that runs: other tests of this process have services of their own.
    (running,) = (one for one in door._running.values() if one.base_url == embedded.base_url)
    running._server.should_exit = True
    running._thread.join(120)
    assert not running._thread.is_alive()
    found = []

    def ask():
        found.append(len(embedded.execute_segment(UNI, limit=10)))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [10] * 4
    assert embedded._transport._born == 1


def test_a_segment_that_died_with_its_service_is_asked_again_under_the_same_key(
    server, settings, tmp_path
):
    from nbext import embedded as door
    from tests.client.faultserver import RESET

    running = door.start_service(tmp_path)

    def die(request):
        server._listener.shutdown(
            socket.SHUT_RDWR
        )  # nobody listens any more when the caller comes again
        return [RESET]

    server.handler = die
    client = nbext.Client(server.url, "key", settings=settings(), restart=lambda: running)
    try:
        assert len(client.execute_segment(UNI, limit=10)) == 10
        (asked,) = server.requests
        with contextlib.closing(
            sqlite3.connect(running.log_path.with_name("registry.sqlite"))
        ) as registry:
            claims = registry.execute("SELECT name FROM idempotency").fetchall()
        assert claims == [(asked.headers["idempotency-key"],)]
    finally:
        running.stop()


ENDING = """
import atexit, pathlib, sys, threading
ended, said = threading.Event(), []
def ask():
    ended.wait()
    try:
        running.restart()
    except Exception as error:
        said.append(type(error).__name__ + ": " + str(error))
def last():
    ended.set()
    thread.join(60)
    print(*said)
thread = threading.Thread(target=ask, daemon=True)
thread.start()
atexit.register(last)  # before nbext's own, so that it runs after it
from nbext import embedded
running = embedded.start_service(pathlib.Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_no_service_starts_while_python_ends(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", ENDING, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert (
        ran.stdout
        == "ServiceDied: Python is ending, so the embedded service does not start again.\n"
    )
    assert ran.stderr == ""


def test_a_service_that_cannot_be_started_again_is_told(settings):
    for error in (ServiceDied("no log"), OSError("no port"), RuntimeError("no new thread")):

        def restart(error=error):
            raise error

        with pytest.raises(ServiceDied, match=f"could not be started again: {error}"):
            nbext.Client("http://127.0.0.1:9", "key", settings=settings(), restart=restart).about()


def test_an_ambiguous_symbol_names_its_candidates(server, settings):
    from tests.client.faultserver import reply

    candidates = [{"address": "0x1"}, {"address": "0x2"}]
    problem = {"code": "ambiguous-symbol", "detail": "two bear it", "candidates": candidates}
    server.script("*", reply(problem, 409, "application/problem+json"))
    with pytest.raises(AmbiguousSymbol) as caught:
        nbext.Client(server.url, "key", settings=settings(), restart=lambda: None).tokens(
            "eth", "USDC"
        )
    assert [c["address"] for c in caught.value.candidates] == ["0x1", "0x2"]


def test_both_columns_of_an_amount_sort_compare_and_sum_as_pandas_columns_do(embedded):
    table = embedded.execute_segment(UNI, limit=1000)
    units, raw = table["UNI_balance"], table["UNI_balance_raw"]
    exact = [int(value) for value in raw]
    assert (str(units.dtype), str(raw.dtype)) == ("float64", "decimal128(38, 0)[pyarrow]")
    assert units.tolist() == [value / 10**18 for value in exact]
    assert [int(value) for value in raw.sort_values(ascending=False)] == sorted(exact, reverse=True)
    assert (int(raw.max()), int(raw.min()), int(raw.sum())) == (max(exact), min(exact), sum(exact))
    # As a Decimal: pyarrow takes a Python integer for one of 64 bits, and says so where it is none.
    assert (raw >= Decimal(10**21)).tolist() == [value >= 10**21 for value in exact]
    assert (
        table.nlargest(3, "UNI_balance")["UNI_balance_raw"].tolist()
        == sorted(exact, reverse=True)[:3]
    )
    assert units.describe()["max"] == units.max() == max(exact) / 10**18


def test_the_type_of_an_exact_column_is_its_tokens_and_not_that_of_the_rows_returned(embedded):
    few, all_ = (
        embedded.execute_segment({"token": {"token": "MAX"}}, limit=limit) for limit in (1, 1000)
    )
    assert (len(few), len(all_)) == (1, 13)
    assert [str(table["MAX_balance_raw"].dtype) for table in (few, all_)] == ["str", "str"]
    assert few.attrs["nbext"]["warnings"] == all_.attrs["nbext"]["warnings"]


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "arrow"])
def test_a_query_writes_the_file_that_an_export_of_its_segment_writes(embedded, tmp_path, ending):
    filters = {"token": [{"token": "UNI"}, {"token": "MAX"}], "columns": ["firstSeen"]}
    table = embedded.execute_segment(filters, "OR", limit=50)
    query, *exports = (
        tmp_path / f"{name}.{ending}" for name in ("query", "export_csv", "export_json")
    )
    told = embedded.execute_segment(filters, "OR", limit=50, to=query)
    assert told.to_dict("records") == [
        {"file": str(query), "rows": 50, "bytes": query.stat().st_size}
    ]
    assert told.attrs["nbext"]["warnings"] == table.attrs["nbext"]["warnings"]
    assert (told.attrs["nbext"]["matched"], told.attrs["nbext"]["returned"]) == (
        table.attrs["nbext"]["matched"],
        50,
    )
    for file in exports:
        getattr(embedded, file.stem)(table.attrs["nbext"]["segment_id"], to=file)
        assert file.read_bytes() == query.read_bytes()
    kept = tmp_path / f"kept.{ending}"
    Target(kept).save(table)
    assert read_rows(query) == read_rows(kept)
    with pytest.raises(ValidationError, match="exists"):
        embedded.execute_segment(filters, "OR", limit=50, to=query)


def test_a_raw_file_has_the_services_own_bytes_however_its_rows_are_asked_for(embedded, tmp_path):
    everyone = {"activity": {"transfers": {"min": 1}}}
    files = [tmp_path / f"{name}.csv" for name in ("one", "other", "export_csv", "export_json")]
    for file, kind in zip(files, ("json", "csv"), strict=False):
        told = embedded.execute_segment(everyone, file_type=kind, to=file, raw=True)
    for file in files[2:]:
        getattr(embedded, file.stem)(told.attrs["nbext"]["segment_id"], to=file, raw=True)
    assert {file.read_bytes() for file in files} == {files[0].read_bytes()}
    assert files[0].read_bytes().startswith(b"address\r\n0x")


def read_rows(file):
    if file.suffix in (".csv", ".json"):
        return file.read_text("utf-8")
    table = (
        pa.parquet.read_table(file)
        if file.suffix == ".parquet"
        else pa.ipc.open_file(file).read_all()
    )
    return table.to_pylist()


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_file_of_amounts_is_read_back_exactly_under_the_same_names_by_duckdb_and_polars(
    embedded, tmp_path, ending
):
    table = embedded.execute_segment(UNI, limit=50)
    exact, file = [int(value) for value in table["UNI_balance_raw"]], tmp_path / f"rows.{ending}"
    embedded.export_csv(table.attrs["nbext"]["segment_id"], to=file)
    read = {
        "csv": "read_csv('{}', types={{'UNI_balance_raw': 'VARCHAR'}})",
        "json": "read_json('{}')",
        "parquet": "read_parquet('{}')",
    }[ending]
    rows = duckdb.sql(f"SELECT * FROM {read.format(file)}")
    assert rows.columns == list(table.columns)
    assert [(a, u, int(r)) for a, u, r in rows.fetchall()] == list(
        zip(table["address"], table["UNI_balance"], exact, strict=True)
    )
    if ending == "csv":
        found = polars.read_csv(file, schema_overrides={"UNI_balance_raw": polars.String})
    else:
        found = polars.read_json(file) if ending == "json" else polars.read_parquet(file)
    assert found.columns == list(table.columns)
    assert (found["UNI_balance"].to_list(), list(map(int, found["UNI_balance_raw"]))) == (
        table["UNI_balance"].tolist(),
        exact,
    )


def test_an_answer_that_is_kept_says_the_notes_of_the_question_as_it_is_written_now(embedded):
    said = {}
    for as_of in ("2026-01-01", 24_136_000, "2026-01-01"):
        about = embedded.execute_segment({**UNI, "asOf": as_of}, limit=3).attrs["nbext"]
        said.setdefault(as_of, []).append((about["segment_id"], about["warnings"]))
    (first, note), again = said["2026-01-01"]
    assert again == (first, note)
    assert said[24_136_000] == [(first, [])]
    assert [one for one in note if "before 2026-01-01 ends" in one] == note != []
