"""Our own service's answers: decoded by their contract, refused in any other shape, without the code for strangers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nbext import Client
from nbext.core.wire import TOKEN_FIELDS
from nbext.errors import ProtocolError, QueryCancelled, SegmentExpired, SegmentFailed
from tests.client.conftest import KEY
from tests.client.faultserver import as_arrow, reply

ADDRESS = "0x" + "ab" * 20
COLUMNS = [{"name": "address", "type": "string"}, {"name": "UNI_balance", "type": "uint256"}]
ROWS = [{"address": f"0x{i:040x}", "UNI_balance": str(10**i)} for i in (1, 20)]
SEGMENT = {
    "id": "seg-1",
    "status": "completed",
    "operator": "AND",
    "filters": {},
    "fileType": "json",
    "limit": 1000,
    "chain": "ethereum",
    "chainId": 1,
    "asOf": {"block": 1, "timestamp": None},
    "counts": {"matched": 2, "returned": 2},
    "truncated": False,
    "columns": COLUMNS,
    "preview": [],
    "links": {"arrow": "/v1/segment/seg-1/arrow"},
    "createdAt": "",
    "completedAt": "",
    "durationMs": 1,
    "cached": False,
    "warnings": [],
    "error": None,
}
PAGE = {"limit": 1000, "offset": 0, "total": 2, "next": None}
PAGES = {"id": "seg-1", "columns": COLUMNS, "data": ROWS, "page": PAGE}


ROWS_AS_ARROW = as_arrow(ROWS)


@pytest.fixture
def ours(server, settings):
    """A client of a service that is ours from the start, as the embedded one is."""
    server.script("POST /v1/segment/execute", reply(SEGMENT))
    server.script("GET /v1/segment/seg-1/arrow", ROWS_AS_ARROW)
    return Client(server.url, KEY, settings=settings(attempts=1), restart=lambda: None)


def test_a_segment_is_its_rows_in_the_types_that_its_columns_state(ours):
    table = ours.execute_segment({"a": 1})
    assert table["UNI_balance"].tolist() == [10, 10**20]
    assert str(table["UNI_balance"].dtype) == "decimal128(38, 0)[pyarrow]"
    assert table.attrs["nbext"]["matched"] == 2


def test_fewer_rows_than_the_segment_has_are_refused(server, ours):
    server.script("GET /v1/segment/seg-1/arrow", as_arrow(ROWS[:1]))
    with pytest.raises(ProtocolError, match="The service states 2 rows, but 1 came"):
        ours.execute_segment({"a": 1})


def without(name):
    return {key: value for key, value in SEGMENT.items() if key != name}


@pytest.mark.parametrize(
    "answer",
    [
        reply([SEGMENT]),
        reply(ROWS),
        reply({"data": ROWS}),
        reply({"result": SEGMENT}),
        reply(without("id")),
        reply(without("status")),
        reply(without("counts")),
        reply(without("columns")),
        reply({**SEGMENT, "id": 7}),
        reply({**SEGMENT, "id": "../x"}),
        reply({**SEGMENT, "status": "COMPLETED"}),
        reply({**SEGMENT, "counts": []}),
        reply({**PAGES, "data": ["0x1"]}),
        reply({**PAGES, "page": {"next": None}}),
        reply(b"", 204, None),
        reply(b"<html>", content_type="text/html"),
        reply(b'{"id": "seg-1", "id": "seg-2"}'),
    ],
)
def test_an_answer_in_another_shape_is_refused(server, ours, answer):
    server.script("POST /v1/segment/execute", answer)
    with pytest.raises(ProtocolError):
        ours.execute_segment({"a": 1})


@pytest.mark.parametrize("answer", [[], {}, {"data": {"address": ADDRESS}}, {"address": None}])
def test_metadata_in_another_shape_is_refused(server, ours, answer):
    server.script(f"GET /v1/tokens/ethereum/{ADDRESS}", reply(answer))
    with pytest.raises(ProtocolError):
        ours.tokens("ethereum", ADDRESS)


@pytest.mark.parametrize(
    "answer", [{"items": []}, {"items": [1], "total": 1}, {"items": {}, "total": 0}]
)
def test_hits_in_another_shape_are_refused(server, ours, answer):
    server.script("POST /v1/search", reply(answer))
    with pytest.raises(ProtocolError):
        ours.search_nfts("ape")


def test_metadata_has_all_fields_of_the_contract(server, ours):
    record = {
        **dict.fromkeys(TOKEN_FIELDS),
        "chain": "ethereum",
        "address": ADDRESS,
        "symbol": "NA",
    }
    server.script(f"GET /v1/tokens/ethereum/{ADDRESS}", reply(record))
    assert ours.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [("failed", SegmentFailed), ("expired", SegmentExpired), ("cancelled", QueryCancelled)],
)
def test_a_segment_that_ended_without_a_result_says_why(server, ours, status, kind):
    ended = {
        **SEGMENT,
        "status": status,
        "error": {"code": "internal", "detail": "The disk is full."},
    }
    server.script("POST /v1/segment/execute", reply(ended))
    with pytest.raises(kind, match="seg-1") as caught:
        ours.execute_segment({"a": 1})
    assert ("The disk is full." in str(caught.value)) == (status != "cancelled")


def test_a_service_that_says_it_is_ours_is_decoded_as_ours(server, settings):
    server.script("GET /about", reply({"service": "nbext"}))
    server.script("POST /v1/segment/execute", reply({"result": SEGMENT}))
    client = Client(server.url, KEY, settings=settings())
    assert client.is_ours
    with pytest.raises(ProtocolError, match='no valid "id"'):
        client.execute_segment({"a": 1})


def test_a_segment_in_exactly_our_shape_says_whose_service_it_is(server, settings):
    server.script("GET /v1/segment/seg-1", reply(SEGMENT))
    server.script("GET /v1/segment/seg-1/arrow", ROWS_AS_ARROW)
    client = Client(server.url, KEY, settings=settings())
    assert len(client.export_json("seg-1")) == 2
    assert client.is_ours
    assert server.asked("/about") == []


ASK = """
import sys
from nbext import Client
client = Client(sys.argv[1], "key")
assert client.is_ours
client.execute_segment({"a": 1})
client.tokens("ethereum", "0x" + "ab" * 20)
client.search_nfts("ape")
client.export_csv("seg-1")
print([name for name in sys.modules if name.startswith("nbext.client.remote")])
"""


def test_the_code_for_strangers_is_not_loaded_for_a_service_that_is_ours(server, ours):
    server.script("GET /about", reply({"service": "nbext"}))
    server.script("GET /v1/segment/seg-1", reply(SEGMENT))
    server.script(
        f"GET /v1/tokens/ethereum/{ADDRESS}",
        reply(dict.fromkeys(TOKEN_FIELDS, None) | {"address": ADDRESS}),
    )
    hits = {"type": "nft", "chain": "ethereum", "searchTerm": "ape", "total": 0, "items": []}
    server.script("POST /v1/search", reply(hits))
    ran = subprocess.run(
        [sys.executable, "-c", ASK, server.url], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.json"])
@pytest.mark.parametrize("raw", [False, True])
def test_a_file_never_has_an_answer_that_is_no_rows(server, ours, tmp_path, name, raw):
    for form in ("arrow", "csv"):
        server.script(f"GET /v1/segment/seg-1/{form}", reply({"detail": "not here"}))
    with pytest.raises(ProtocolError):
        ours.execute_segment({"a": 1}, to=tmp_path / name, raw=raw)
    assert list(tmp_path.glob("rows*")) == []
