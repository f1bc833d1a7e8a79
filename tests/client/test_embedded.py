"""The client and our own service, end to end, on the synthetic sample."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import subprocess
import sys
import threading

import pandas as pd
import pytest

import nbext
from nbext.client.frames import columns_with_as_of as columns_of
from nbext.connect import connect
from nbext.core.operations import NFT_FIELDS, SEARCH_FIELDS, SEGMENT_FIELDS, SIGN_UP_FIELDS, TOKEN_FIELDS
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

    embedded.start(folder / "data").stop()


def test_the_package_offers_the_function_whoever_imported_the_module():
    assert nbext.connect.__call__ is not None
    assert callable(nbext.connect)
    assert nbext.Client is type(nbext.Client("https://h.example", "key"))


def test_the_embedded_service_is_ours_and_says_whose_data_it_has(embedded):
    assert embedded.is_ours
    assert embedded.about()["data"]["synthetic"] is True
    assert embedded.schema()["$schema"].startswith("https://json-schema.org/")


def test_a_segment_is_the_same_rows_by_every_way(embedded, tmp_path):
    table = embedded.execute_segment(UNI, limit=50)
    told = table.attrs["nbext"]
    assert (len(table), told["returned"], told["truncated"], told["operator"]) == (50, 50, True, "AND")
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


def test_no_match_is_no_rows_with_the_same_columns(embedded):
    none = embedded.execute_segment({"token": {"token": "UNI", "balance": {"min": "999999999"}}})
    assert (len(none), list(none)) == (0, ["address", "UNI_balance"])


def test_the_block_of_an_answer_is_typed_columns_and_missing_where_nothing_was_found(embedded):
    found = embedded.tokens("ethereum", ["UNI", "0x" + "1" * 40])
    names = list(found)
    assert names[-3:] == ["asOfBlock", "asOfTimestamp", "error"]
    assert found.dtypes[["asOfBlock", "asOfTimestamp"]].astype(str).tolist() == ["Int64", "str"]
    block = embedded.about()["data"]["chains"][0]["lastBlock"]
    assert found["asOfBlock"].tolist() == [block, pd.NA]
    assert found["asOfTimestamp"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").tolist() == [True, False]
    segment = embedded.execute_segment(UNI, limit=1).attrs["nbext"]["segment_id"]
    assert embedded.segment(segment)["asOfBlock"].tolist() == [block]


def test_a_limit_of_zero_only_counts(embedded):
    counted = embedded.execute_segment(UNI, limit=0)
    assert len(counted) == 0
    assert counted.attrs["nbext"]["matched"] == len(embedded.execute_segment(UNI, limit=1_000_000))


def test_every_operation_has_its_columns(embedded):
    segment = embedded.execute_segment(UNI, limit=1).attrs["nbext"]["segment_id"]
    assert list(embedded.segment(segment)) == list(columns_of(SEGMENT_FIELDS))
    assert list(embedded.tokens("eth", "UNI")) == list(columns_of(TOKEN_FIELDS))
    assert list(embedded.nfts("1", "BAYC")) == list(columns_of(NFT_FIELDS))
    assert list(embedded.search_nfts("ape")) == list(SEARCH_FIELDS)
    assert list(embedded.sign_up("someone@example.com")) == list(SIGN_UP_FIELDS)


def test_what_the_service_refuses_is_the_error_of_its_field(embedded):
    with pytest.raises(InvalidSegment) as caught:
        embedded.execute_segment({"tokn": {"token": "UNI"}})
    assert caught.value.errors == [
        {"pointer": "/filters/tokn", "code": "unknown-key", "detail": "Unknown condition 'tokn'. Did you mean 'token'?"}
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


def test_a_segment_that_died_with_its_service_is_asked_again_under_the_same_key(server, settings, tmp_path):
    from nbext import embedded as door
    from tests.client.faultserver import RESET

    running = door.start(tmp_path)

    def die(request):
        server._listener.shutdown(socket.SHUT_RDWR)  # nobody listens any more when the caller comes again
        return [RESET]

    server.handler = die
    client = nbext.Client(server.url, "key", settings=settings(), restart=lambda: running)
    try:
        assert len(client.execute_segment(UNI, limit=10)) == 10
        (asked,) = server.requests
        with contextlib.closing(sqlite3.connect(tmp_path / "service" / "registry.sqlite")) as registry:
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
running = embedded.start(pathlib.Path(sys.argv[1]))
"""


def test_no_service_starts_while_python_ends(tmp_path):
    ran = subprocess.run([sys.executable, "-c", ENDING, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout == "ServiceDied: Python is ending, so the embedded service does not start again.\n"
    assert ran.stderr == ""


def test_a_service_that_cannot_be_started_again_is_told(settings):
    def restart():
        raise ServiceDied("its log is /some/log")

    with pytest.raises(ServiceDied, match="could not be started again: its log is /some/log"):
        nbext.Client("http://127.0.0.1:9", "key", settings=settings(), restart=restart).about()


def test_an_ambiguous_symbol_names_its_candidates(server, settings):
    from tests.client.faultserver import reply

    candidates = [{"address": "0x1"}, {"address": "0x2"}]
    problem = {"code": "ambiguous-symbol", "detail": "two bear it", "candidates": candidates}
    server.script("*", reply(problem, 409, "application/problem+json"))
    with pytest.raises(AmbiguousSymbol) as caught:
        nbext.Client(server.url, "key", settings=settings(), restart=lambda: None).tokens("eth", "USDC")
    assert [c["address"] for c in caught.value.candidates] == ["0x1", "0x2"]
