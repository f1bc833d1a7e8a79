"""Exports: every row, exact types, whole files or none."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import tracemalloc
from decimal import Decimal
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nbext import Client
from nbext.client import frames, writer
from nbext.client.remote import content
from nbext.errors import NotFound, ProtocolError, ValidationError
from tests.client.conftest import KEY
from tests.client.faultserver import as_arrow, reply

ROWS = [
    {"address": f"0x{i:040x}", "UNI_balance": str(10**i * 7), "BAYC_count": i} for i in (1, 15, 30)
]
COLUMNS = [
    {"name": "address", "type": "string"},
    {"name": "UNI_balance", "type": "uint256"},
    {"name": "BAYC_count", "type": "integer"},
]
DIGITS = "0.12345678901234567890123"
CSV = "".join(
    ",".join(str(value) for value in line) + "\r\n"
    for line in [ROWS[0], *(r.values() for r in ROWS)]
)


CUT = "The segment's description says that its rows are not all: truncated."


def described(**more):
    return {
        "id": "abc",
        "status": "completed",
        "columns": COLUMNS,
        "counts": {"matched": 9, "returned": 3},
        "limit": 3,
        "chain": "ethereum",
        "truncated": True,
        "preview": ROWS[:1],
        "links": {},
        "warnings": ["w"],
        **more,
    }


def page(rows, offset=0, total=3, following=None):
    return {
        "id": "abc",
        "columns": COLUMNS,
        "data": rows,
        "page": {"limit": 2, "offset": offset, "total": total, "next": following},
    }


def arrow(rows=ROWS):
    table = pa.table(
        {
            "address": [r["address"] for r in rows],
            "UNI_balance": [r["UNI_balance"] for r in rows],
            "BAYC_count": pa.array([r["BAYC_count"] for r in rows], pa.int64()),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue()


@pytest.fixture
def ours(server):
    """A service that describes a finished segment and exports it in every form."""
    server.script("GET /v1/segment/abc", reply(described()))
    server.script(
        "GET /v1/segment/abc/json", reply(page(ROWS[:2], following="/v1/segment/abc/json?offset=2"))
    )
    server.script("GET /v1/segment/abc/json?offset=2", reply(page(ROWS[2:], 2)))
    server.script(
        "GET /v1/segment/abc/csv", reply(CSV.encode(), content_type="text/csv; charset=utf-8")
    )
    return server


EXPECTED = pd.DataFrame(
    {
        "address": pd.array([r["address"] for r in ROWS], dtype="str"),
        "UNI_balance": pd.array(
            [Decimal(r["UNI_balance"]) for r in ROWS], dtype=pd.ArrowDtype(pa.decimal128(38, 0))
        ),
        "BAYC_count": pd.array([1, 15, 30], dtype="int64"),
    }
)


@pytest.mark.parametrize("export", ["export_json", "export_csv"])
def test_an_export_has_every_row_with_the_types_that_the_service_states(ours, client, export):
    table = getattr(client, export)("abc")
    pd.testing.assert_frame_equal(table, EXPECTED)
    told = table.attrs["nbext"]
    assert (told["segment_id"], told["matched"], told["returned"], told["truncated"]) == (
        "abc",
        9,
        3,
        True,
    )
    assert (told["columns"], told["warnings"]) == (COLUMNS, ["w", CUT])
    # attrs are plain values: pandas compares and copies them.
    assert json.loads(json.dumps(told)) == told


def test_arrow_is_taken_where_it_is_offered(ours, client):
    ours.script("GET /v1/segment/abc", reply(described(links={"arrow": "/v1/segment/abc/arrow"})))
    ours.script(
        "GET /v1/segment/abc/arrow",
        reply(arrow(), content_type="application/vnd.apache.arrow.stream"),
    )
    pd.testing.assert_frame_equal(client.export_csv("abc"), EXPECTED)
    ours.script(
        "POST /v1/segment/execute", reply(described(links={"arrow": "/v1/segment/abc/arrow"}))
    )
    pd.testing.assert_frame_equal(client.execute_segment({"a": 1}), EXPECTED)
    assert ours.asked("/v1/segment/abc/csv") == ours.asked("/v1/segment/abc/json") == []


@pytest.mark.parametrize("export", ["export_json", "export_csv"])
def test_our_own_service_is_asked_for_arrow_even_where_it_cannot_describe_the_segment(
    ours, settings, export
):
    client = Client(ours.url, KEY, settings=settings(attempts=1), restart=lambda: None)
    ours.script("GET /v1/segment/abc", reply({"code": "busy", "detail": "Later."}, 503))
    ours.script("GET /v1/segment/abc/arrow", as_arrow(ROWS))
    table = getattr(client, export)("abc")
    pd.testing.assert_frame_equal(table, EXPECTED[["address", "UNI_balance"]])
    assert ours.asked("/v1/segment/abc/csv") == ours.asked("/v1/segment/abc/json") == []


@pytest.mark.parametrize(
    ("largest", "dtype", "note"),
    [
        ("5", "decimal128(38, 0)[pyarrow]", None),
        ("9" * 37, "decimal128(38, 0)[pyarrow]", None),
        # Of one more digit the sum would not fit, and pandas would return another number for it.
        (
            "9" * 38,
            "decimal256(76, 0)[pyarrow]",
            "more than 38 digits: its type is decimal256(76, 0)",
        ),
        (
            "9" * 39,
            "decimal256(76, 0)[pyarrow]",
            "more than 38 digits: its type is decimal256(76, 0)",
        ),
        (
            "9" * 76,
            "decimal256(76, 0)[pyarrow]",
            "more than 38 digits: its type is decimal256(76, 0)",
        ),
        (str(2**256 - 1), "str", "more than 76 digits: it is text"),
    ],
)
def test_exact_amounts_have_one_dtype_unless_they_or_their_sum_do_not_fit_it(
    ours, client, largest, dtype, note
):
    csv = CSV.replace(ROWS[2]["UNI_balance"], largest)
    ours.script("GET /v1/segment/abc/csv", reply(csv.encode(), content_type="text/csv"))
    table = client.export_csv("abc")
    assert str(table["UNI_balance"].dtype) == dtype
    assert list(map(int, table["UNI_balance"])) == [70, 7 * 10**15, int(largest)]
    if dtype != "str":
        assert table["UNI_balance"].sum() == 70 + 7 * 10**15 + int(largest)
    notes = [one for one in table.attrs["nbext"]["warnings"][1:] if one != CUT]
    assert [one for one in notes if note and note in one] == notes
    assert len(notes) == (note is not None)


# Each of 38 digits, their sum of 39.
@hypothesis_settings(deadline=None)
@example([[6 * 10**37, 6 * 10**37]])
@given(
    st.lists(
        st.lists(st.integers(0, 10**38) | st.integers(0, 2**256 - 1) | st.integers(0, 99)),
        max_size=4,
    )
)
def test_parts_of_exact_amounts_are_one_column_of_the_type_that_holds_their_sum(parts):
    texts = [pa.array(map(str, part), pa.large_string()) for part in parts]
    whole = frames.exact_column(pa.chunked_array(texts, pa.large_string()))
    amounts = [amount for part in parts for amount in part]
    digits = (
        38
        if sum(amounts) < 10**38
        else 76
        if sum(amounts) < 5 * 10**76 and max(amounts) < 10**76
        else None
    )
    kinds = {38: pa.decimal128(38, 0), 76: pa.decimal256(76, 0), None: pa.string()}
    assert (whole.type, list(map(int, whole.to_pylist()))) == (kinds[digits], amounts)


@pytest.mark.parametrize("last", ["1", "9" * 39, str(2**256 - 1)])
def test_amounts_that_arrive_in_many_pieces_are_as_exact_as_all_at_once(ours, client, last):
    count = content.BLOCK // 32
    amounts = [*(str(10**18 + i) for i in range(count)), last]
    body = "address,UNI_balance,BAYC_count\r\n" + "".join(
        f"0x{i:040x},{one},1\r\n" for i, one in enumerate(amounts)
    )
    ours.script("GET /v1/segment/abc", reply(described(counts={}, limit=None)))
    ours.script("GET /v1/segment/abc/csv", reply(body.encode(), content_type="text/csv"))
    assert list(map(str, map(int, client.export_csv("abc")["UNI_balance"]))) == amounts


def test_missing_integers_stay_integers(ours, client):
    holes = CSV.replace(",15\r\n", ",\r\n")
    ours.script("GET /v1/segment/abc/csv", reply(holes.encode(), content_type="text/csv"))
    table = client.export_csv("abc")
    assert str(table["BAYC_count"].dtype) == "Int64"
    assert table["BAYC_count"].tolist() == [1, pd.NA, 30]


def test_without_stated_types_all_is_text(server, client):
    server.script(
        "GET /v1/segment/abc/csv",
        reply(b"address,n\n0x1,00012\n0x2,1e3\n", content_type="text/csv"),
    )
    table = client.export_csv("abc")
    assert table.dtypes.astype(str).tolist() == ["str", "str"]
    assert table["n"].tolist() == ["00012", "1e3"]


def test_the_settings_can_state_types(server, settings):
    server.script("GET /v1/segment/abc/csv", reply(b"address,n\n0x1,12\n", content_type="text/csv"))
    remote = {"types": {"n": "integer"}}
    table = Client(server.url, KEY, settings=settings(remote=remote)).export_csv("abc")
    assert table["n"].tolist() == [12]


def test_types_in_the_settings_change_no_columns_order(server, settings):
    client = Client(
        server.url, KEY, settings=settings(remote={"types": {"n": "integer", "nowhere": "integer"}})
    )
    server.script("GET /v1/segment/abc/json", reply({"data": [{"address": "0x1", "n": "7"}]}))
    table = client.export_json("abc")
    assert list(table.columns) == ["address", "n"]
    # The digits of a whole number are one where the settings say so, as in CSV.
    assert (table["n"].tolist(), table.dtypes.astype(str).tolist()) == ([7], ["str", "int64"])
    server.script(
        "POST /v1/segment/execute", reply({"columns": ["address", "n"], "rows": [["0x1", 7]]})
    )
    ran = client.execute_segment({"a": 1})
    assert (list(ran.columns), ran.dtypes.astype(str).tolist()) == (
        ["address", "n"],
        ["str", "int64"],
    )
    # Where nothing came, the settings are all that is known of the columns.
    server.script("POST /v1/segment/execute", reply({"rows": []}))
    assert list(client.execute_segment({"a": 1}).columns) == ["n", "nowhere"]


@pytest.mark.parametrize(("returned", "fails"), [(3, False), (4, True), (2, True)])
@pytest.mark.parametrize("to", [None, "rows.csv", "rows.json", "rows.parquet"])
@pytest.mark.parametrize("export", ["export_json", "export_csv"])
def test_the_rows_are_counted(
    ours, client, tmp_path, returned, fails, to, export
):  # its parameters
    ours.script(
        "GET /v1/segment/abc", reply(described(counts={"matched": 9, "returned": returned}))
    )
    ours.script("GET /v1/segment/abc/json", reply(page(ROWS)))
    target = None if to is None else tmp_path / to
    if not fails:
        getattr(client, export)("abc", to=target)
        return
    with pytest.raises(ProtocolError, match=f"states {returned} rows, but 3 came"):
        getattr(client, export)("abc", to=target)
    assert list(tmp_path.iterdir()) == [tmp_path / "pyproject.toml"]


def test_a_segment_that_is_gone_is_not_found(server, client):
    server.script("*", reply({"detail": "gone"}, 410))
    with pytest.raises(NotFound):
        client.export_csv("abc")


# ------------------------------------------------------------------ pages


@pytest.mark.parametrize(
    ("first", "path"),
    [
        ({"next": "/p2"}, "/p2"),
        ({"links": {"next": "/p2"}}, "/p2"),
        ({"links": {"next": {"href": "/p2"}}}, "/p2"),
        ({"next": "?cursor=z"}, "?cursor=z"),
        ({"pagination": {"nextCursor": "z"}}, "?cursor=z"),
        ({"next_cursor": "z"}, "?cursor=z"),
        ({"next": "z"}, "?cursor=z"),
        ({"nextPageToken": "z"}, "?pageToken=z"),
        ({"nextToken": "z"}, "?nextToken=z"),
        ({"offset": 0, "limit": 2, "total": 3}, "?offset=2"),
        ({"page": 1, "size": 2, "total": 3}, "?page=2"),
        ({"page": 1, "totalPages": 2}, "?page=2"),
        ({"meta": {"pagination": {"page": 1, "pages": 2}}}, "?page=2"),
        ({"nextPage": 2}, "?page=2"),
    ],
)
def test_every_way_to_the_next_page_is_followed(server, client, first, path):
    last = {"rows": ROWS[2:], "page": 2, "totalPages": 2} if "page" in path else {"rows": ROWS[2:]}
    server.script(f"GET {path if path[0] == '/' else '/v1/segment/abc/json' + path}", reply(last))
    server.script("GET /v1/segment/abc/json", reply({"rows": ROWS[:2], **first}))
    assert client.export_json("abc")["address"].tolist() == [row["address"] for row in ROWS]


def test_a_link_header_leads_to_the_next_page(server, client):
    server.script("GET /p2", reply(ROWS[2:]))
    server.script(
        "GET /v1/segment/abc/json", reply(ROWS[:2], Link='</p1>; rel="prev", </p2>; rel="next"')
    )
    assert len(client.export_json("abc")) == 3


def test_pages_that_go_round_in_a_circle_are_an_error(server, client):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("*", reply({"rows": ROWS, "cursor": "same"}))
    with pytest.raises(ProtocolError, match="came twice"):
        client.export_json("abc")


def test_a_page_elsewhere_is_asked_for_without_the_key(server, client):
    from tests.client.faultserver import FaultServer

    other = FaultServer()
    other.script("*", reply(ROWS[2:]))
    server.script("GET /v1/segment/abc/json", reply({"rows": ROWS[:2], "next": f"{other.url}/p2"}))
    assert len(client.export_json("abc")) == 3
    assert "x-api-key" not in other.requests[0].headers
    other.close()


def test_a_file_behind_an_address_is_fetched(server, client):
    server.script("POST /v1/segment/execute", reply({"downloadUrl": "/files/x.csv"}))
    server.script("GET /files/x.csv", reply(CSV.encode(), content_type="application/octet-stream"))
    assert len(client.execute_segment({"a": 1})) == 3


# ------------------------------------------------------------------ files


def read_file(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    text = path.read_bytes().decode()
    return (
        json.loads(text)
        if path.suffix == ".json"
        else list(csv.DictReader(io.StringIO(text, newline="")))
    )


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
@pytest.mark.parametrize("export", ["export_json", "export_csv"])
def test_an_export_goes_to_a_file_of_any_kind(ours, client, tmp_path, ending, export):
    ours.script("GET /v1/segment/abc/json", reply(page(ROWS)))
    path = tmp_path / f"rows{ending}"
    told = getattr(client, export)("abc", to=path)
    found = read_file(path)
    assert [list(map(str, row.items())) for row in found] == [
        list(map(str, ({k: str(v) for k, v in row.items()} if ending == ".csv" else row).items()))
        for row in ROWS
    ]
    assert told.to_dict("records") == [{"file": str(path), "rows": 3, "bytes": path.stat().st_size}]
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_mask()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pyproject.toml", path.name]


def paged(pages, rows):
    """Answer an export in so many pages of so many rows each."""

    def answer(request):
        if request.path == "/v1/segment/abc":
            return reply({}, 404)
        number = int(request.path.partition("page=")[2] or 1)
        data = [
            {"address": f"0x{number:020x}{i:020x}", "n": i, "note": "x" * 200} for i in range(rows)
        ]
        return reply(
            {
                "rows": data,
                "next": f"/v1/segment/abc/json?page={number + 1}" if number < pages else None,
            }
        )

    return answer


@pytest.mark.load
@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_a_paged_export_holds_one_page_in_memory_and_not_all(server, client, tmp_path, ending):
    peaks = []
    for pages in (4, 4, 20):  # the first one alone pays for what is imported
        server.handler = paged(pages, 2_000)
        tracemalloc.start()
        told = client.export_json("abc", to=tmp_path / f"{len(peaks)}{ending}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert told["rows"].tolist() == [pages * 2_000]
    assert peaks[2] < 1.5 * peaks[1], peaks
    found = read_file(tmp_path / f"2{ending}")
    assert [row["address"] for row in found] == [
        f"0x{n:020x}{i:020x}" for n in range(1, 21) for i in range(2_000)
    ]
    assert {type(row["n"]) for row in found} == {str if ending == ".csv" else int}


@pytest.mark.parametrize("ending", [".csv", ".json", ".parquet"])
def test_a_paged_export_that_breaks_off_leaves_no_file(server, client, tmp_path, ending):
    whole = paged(3, 5)
    server.handler = lambda request: reply({}, 404) if "page=3" in request.path else whole(request)
    with pytest.raises(NotFound):
        client.export_json("abc", to=tmp_path / f"rows{ending}")
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]


def test_a_column_in_a_file_has_the_type_that_holds_all_its_values(server, client, tmp_path):
    values = {
        "whole": [1, 2],
        "late": [None, 3],
        "big": [1, 2**64],
        "mixed": [1, "a"],
        "yes": [True, None],
        "part": [0.5, 1],
        "digits": [0.12345678901234567890123, 1],
    }
    rows = [{name: both[i] for name, both in values.items() if both[i] is not None} for i in (0, 1)]
    first = json.dumps({"rows": rows[:1], "next": "/v1/segment/abc/json?page=2"})
    server.script(
        "GET /v1/segment/abc/json", reply(first.replace("0.12345678901234568", DIGITS).encode())
    )
    server.script("GET /v1/segment/abc/json?page=2", reply({"rows": rows[1:]}))
    client.export_json("abc", to=tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").to_pydict() == {
        "whole": [1, 2],
        "big": ["1", str(2**64)],
        "mixed": ["1", "a"],
        "yes": [True, None],
        "part": ["0.5", "1"],
        "digits": [DIGITS, "1"],
        "late": [None, 3],
    }
    client.export_json("abc", to=tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text())[0]["digits"] == DIGITS


def _mask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    "target", ["rows.csv", "link.csv", "folder.csv", "rows.xlsx", "rows", "missing/rows.csv"]
)
def test_a_file_that_cannot_be_is_refused_before_any_request(ours, client, tmp_path, target):
    (tmp_path / "rows.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValidationError):
        client.export_csv("abc", to=tmp_path / target)
    assert ours.requests == []
    assert (tmp_path / "rows.csv").read_text() == "mine"


def test_a_file_is_replaced_on_request_and_a_link_is_neither_replaced_nor_followed(
    ours, client, tmp_path
):
    other, link = tmp_path / "other.csv", tmp_path / "link.csv"
    other.write_text("mine")
    link.symlink_to(other)
    with pytest.raises(ValidationError, match="is a link"):
        client.export_csv("abc", to=link, overwrite=True)
    assert ours.requests == []
    # Also where it is made while the rows come.
    writer.Target(link, overwrite=True).save(pd.DataFrame({"a": [1]}))
    assert (other.read_text(), link.is_symlink()) == ("mine", False)
    client.export_csv("abc", to=other, overwrite=True)
    assert other.read_text() != "mine"


def test_the_services_name_for_a_file_is_never_used(ours, client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    named = reply(
        CSV.encode(),
        content_type="text/csv",
        Content_Disposition='attachment; filename="../../evil.csv"',
    )
    ours.script("GET /v1/segment/abc/csv", named)
    client.export_csv("abc", to="rows.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pyproject.toml", "rows.csv"]


@pytest.mark.parametrize("to", [None, "rows.csv"])
def test_rows_are_counted_alike_in_memory_and_in_a_file(server, client, tmp_path, to):
    server.script("GET /v1/segment/abc", reply({"id": "abc", "status": "completed", "total": 2}))
    rows = b"address\n0x01\n0x02\n"
    server.script("GET /v1/segment/abc/csv", reply(rows, content_type="text/csv"))
    about = client.export_csv("abc", to=to and tmp_path / to).attrs["nbext"]
    assert (about["matched"], about["returned"], about["truncated"]) == (2, 2, False)


FORMULAS = [
    "=1+1",
    "+cmd",
    "-cmd|x",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "＋1",
    "－1",
    "＠1",
    "=\0",
]
HARMLESS = ["NA", "-5", "+3.25", "a=b", "", "0x12", "it's", '"q"', "two\nlines", "a,b", "'=already"]


def test_a_spreadsheet_runs_nothing_of_an_export(server, client, tmp_path):
    sink = io.StringIO()
    lines = [["name", "=n"], *[[text, text] for text in FORMULAS + HARMLESS]]
    csv.writer(sink, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(lines)
    server.script(
        "GET /v1/segment/abc/csv", reply(sink.getvalue().encode(), content_type="text/csv")
    )
    client.export_csv("abc", to=tmp_path / "safe.csv")
    found = list(csv.reader(io.StringIO((tmp_path / "safe.csv").read_bytes().decode(), newline="")))
    assert found[0] == ["name", "'=n"]
    assert [row[0] for row in found[1:]] == ["'" + text for text in FORMULAS] + HARMLESS
    client.export_csv("abc", to=tmp_path / "raw.csv", raw=True)
    found = list(csv.reader(io.StringIO((tmp_path / "raw.csv").read_bytes().decode(), newline="")))
    assert found == lines


@given(st.lists(st.text(), max_size=20))
def test_no_cell_begins_like_a_formula(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    batch = pa.record_batch({"x": pa.array(texts, pa.string())})
    found = writer.safe(batch).column(0).to_pylist()
    for before, after in zip(texts, found, strict=True):
        assert after in (before, "'" + before)
        assert after[:1] not in tuple("=@\t\r\n\0＝＋－＠")


CELLS = st.text(alphabet='a",\n\r')


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8), st.integers(1, 5))
@hypothesis_settings(suppress_health_check=[HealthCheck.too_slow])
def test_rows_are_counted_by_lines_outside_of_quotes(rows, step):
    sink = io.StringIO()
    csv.writer(sink, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    body, copied = sink.getvalue().encode(), io.BytesIO()
    pieces = iter([body[i : i + step] for i in range(0, len(body), step)])
    assert (
        writer.copy(SimpleNamespace(read=lambda size: next(pieces, b"")), copied) == len(rows) - 1
    )
    assert copied.getvalue() == body
