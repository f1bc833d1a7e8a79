"""CSV, Arrow, JSON and packed bodies: the same rows and the same refusals in memory and in every file."""

# A row of a table stays on its line.
# ruff: noqa: E501

from __future__ import annotations

import gzip
import io
import json

import pandas as pd
import pyarrow as pa
import pytest

from nbext.core.wire import ARROW_TYPE
from nbext.errors import NbextError, ProtocolError
from tests.client.faultserver import reply

ROWS = [(i, f"0x{i:040x}", i * 7) for i in range(1, 26)]
LINES = [f"{rank},{address},{n}" for rank, address, n in ROWS]
HEADER = "rank,address,n"
TARGETS = (None, "rows.csv", "rows.json", "rows.parquet", "rows.arrow", "raw.csv")


def text(*lines: str, end: str = "\n") -> bytes:
    return ("\n".join(lines) + end).encode()


def stream(*batches: range, end: bool = True, more: bytes = b"") -> bytes:
    """An Arrow stream, with or without the mark of its end."""
    whole = pa.table({"address": [row[1] for row in ROWS], "n": [row[2] for row in ROWS]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, whole.schema) as out:
        for batch in batches:
            out.write_table(whole.slice(batch.start, len(batch)))
        if not end:
            return sink.getvalue() + more
    return sink.getvalue() + more


def until_closed(body: bytes, content_type: str, **headers: str) -> list[bytes | None]:
    """An answer that ends when its connection does."""
    lines = ["HTTP/1.1 200 X", f"Content-Type: {content_type}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ["\r\n".join(lines).encode() + b"\r\n\r\n" + body, None]


def found(server, client, tmp_path, answer, target):
    """Return the number of rows, or the error's text, of an export into one target."""
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/csv", answer)
    to = None if target is None else tmp_path / target
    try:
        table = client.export_csv("abc", to=to, overwrite=True, raw=target == "raw.csv")
    except NbextError as error:
        assert to is None or not to.exists()
        return str(error), []
    finally:
        if to is not None:
            to.unlink(missing_ok=True)
    return len(table) if to is None else int(table["rows"].iloc[0]), table.attrs["nbext"][
        "warnings"
    ]


REFUSED = {
    "an exception as the last row of one column": (text("address", *(row[1] for row in ROWS), "Code: 241. DB::Exception: Memory limit exceeded"), "Code: 241. DB::Exception"),
    "an exception as the last row of three": (text(HEADER, *LINES, "Code: 241. DB::Exception,a,b"), "Among the rows is 'a'"),
    "an exception where no address is": (text("rank,n", *(f"{row[0]},{row[2]}" for row in ROWS), "Code: 241. DB::Exception,b"), "Code: 241. DB::Exception"),
    "a sum": (text(HEADER, *LINES, "Total,,25"), "''"),
    "a sum where no address is": (text("rank,n", *(f"{row[0]},{row[2]}" for row in ROWS), "Total,25"), "'Total'"),
    "a sum below one row": (text("address,n", f"{ROWS[0][1]},7", "Total,7"), "'Total'"),
    "a sum below one numbered row": (text(HEADER, LINES[0], "Total,,7"), "'Total'"),
    "a second header": (text(HEADER, *LINES[:10], HEADER, *LINES[10:]), "Among the rows is 'address'"),
    "a second header where no address is": (text("rank,n", "1,2", "2,3", "rank,n", "1,5"), "Among the rows is 'rank'"),
    "a remark": (text("address", *(row[1] for row in ROWS), "15 more rows"), "15 more rows"),
    "an error instead of the header": (text("Internal error, try later"), "an error: Internal error"),
    "an error as the only row": (text("code,message", "500,too many queries"), "too many queries"),
    "no header": (text(*LINES), "first line has values"),
    "fewer values": (text(HEADER, *LINES, "26"), "line 27"),
    "fewer values under a comment": (text("# made today", HEADER, *LINES, "26"), "line 28"),
    "a quote that is not closed": (text(HEADER, *LINES, '26,"0x'), "line 27"),
}  # fmt: skip


@pytest.mark.slow
def test_what_comes_between_rows_is_refused_wherever_they_go(server, client, tmp_path):
    wrong = {}
    for name, (body, said) in REFUSED.items():
        for target in TARGETS:
            got, _ = found(server, client, tmp_path, reply(body, content_type="text/csv"), target)
            if not isinstance(got, str) or said not in got:
                wrong[name, target] = got
    assert wrong == {}


READ = {
    "plain": (text(HEADER, *LINES), 25, []),
    "semicolons and decimal commas": (text("address;share", *(f"{row[1]};{row[0]},5" for row in ROWS)), 25, []),
    "a comma in the name of a column": (text("address;share, in %", *(f"{row[1]};{row[0]},5" for row in ROWS)), 25, []),
    "sep=": (text("sep=;", "address;n", "0x1;2"), 1, []),
    "a comment": (text("# first 10 of 99 rows", "address,n", "0x1,2"), 1, ["first 10 of 99 rows"]),
    "two comments, quotes and CR": (text("#made today\r", '# by "us"\r', "address,n\r", "0x1,2\r"), 1, ["made today", 'by "us"']),
    "a header after #": (text("#address,n", "0xabcdef,2"), 1, []),
    "names of wallets": (text("address,n", *(f"{row[1]},1" for row in ROWS), "vitalik.eth,2"), 26, []),
    "owners that some rows lack": (text("owner,address", *(f"{row[1] if row[0] % 3 else ''},{row[1]}" for row in ROWS)), 25, []),
    "an error's name in a column of names": (text("name,n", "Total War,1", "Error: 404,2"), 2, []),
}  # fmt: skip


def test_what_is_a_table_is_one_wherever_it_goes(server, client, tmp_path):
    wrong = {}
    for name, (body, rows, remarks) in READ.items():
        for target in TARGETS:
            got, notes = found(
                server, client, tmp_path, reply(body, content_type="text/csv"), target
            )
            expected = [f"Above the header the answer says {remark!r}." for remark in remarks]
            if (got, notes) != (rows, expected):
                wrong[name, target] = got, notes
    assert wrong == {}


def test_the_comma_of_a_fraction_separates_nothing(server, client):
    server.script("GET /v1/segment/abc/csv", reply(READ["a comma in the name of a column"][0], content_type="text/csv"))  # fmt: skip
    table = client.export_csv("abc")
    expected = pd.DataFrame({"address": [row[1] for row in ROWS], "share, in %": [f"{row[0]},5" for row in ROWS]})  # fmt: skip
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)


def test_arrow_without_the_mark_of_its_end_is_refused_wherever_it_goes(server, client, tmp_path):
    whole = stream(range(10), range(10, 25))
    bodies = {
        "whole": (whole, 25),
        "no mark": (stream(range(10), end=False), "no mark of its end"),
        "more after it": (stream(range(10), more=stream(range(10, 25))), "no mark of its end"),
        "cut": (whole[:-60], "not a valid Arrow stream"),
    }
    wrong = {}
    for name, (body, expected) in bodies.items():
        for target in TARGETS:
            got, _ = found(server, client, tmp_path, reply(body, content_type=ARROW_TYPE), target)
            if got != expected and not (isinstance(got, str) and str(expected) in got):
                wrong[name, target] = got
    assert wrong == {}


def test_a_remark_among_rows_is_refused_however_few_rows_come_at_a_time(server, client, tmp_path):
    whole = pa.table({"address": [*(row[1] for row in ROWS[:9]), "15 more rows", ROWS[9][1]]})
    for size in (1, 2, 11):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, whole.schema) as out:
            out.write_table(whole, max_chunksize=size)
        for target in TARGETS[:3]:
            answer = reply(sink.getvalue(), content_type=ARROW_TYPE)
            got, _ = found(server, client, tmp_path, answer, target)
            assert "Among the rows is '15 more rows'" in str(got)


def test_a_packed_body_that_may_be_cut_between_two_members_says_so(server, client, tmp_path):
    members = gzip.compress(text(HEADER, *LINES[:10])), gzip.compress(text(*LINES[10:]))
    note = "The service states neither its answer's length nor how many rows there are: its end cannot be verified."
    for declared in ({"Content_Encoding": "gzip"}, {}):
        for body, rows in ((members[0], 10), (b"".join(members), 25)):
            for target in TARGETS:
                cut = until_closed(body, "text/csv", **declared)
                assert found(server, client, tmp_path, cut, target) == (rows, [note])
                whole = reply(body, content_type="text/csv", **declared)
                assert found(server, client, tmp_path, whole, target) == (rows, [])


@pytest.mark.parametrize("large", [2**64, 10**30, 10**50])
def test_integers_of_one_column_are_numbers_of_one_exact_type_whatever_their_size(
    server, client, large
):
    rows = [{"address": f"0x{i:040x}", "n": n} for i, n in enumerate([1, None, large])]
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/json", reply({"rows": rows}))
    column = client.export_json("abc")["n"]
    assert (column.isna().tolist(), column.sum()) == ([False, True, False], large + 1)


def test_an_arrow_stream_without_columns_or_with_one_name_twice_is_refused(server, client):
    values = pa.array([row[1] for row in ROWS])
    for table in (
        pa.Table.from_arrays([values, values], names=["address", "address"]),
        pa.table({}),
    ):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        server.script("*", reply(sink.getvalue(), content_type=ARROW_TYPE))
        with pytest.raises(NbextError, match="no columns, or two of the same name"):
            client.export_csv("abc")


def test_the_rows_of_a_query_go_into_every_file_as_they_are_in_memory_and_a_part_into_none(
    server, client, tmp_path
):
    rows = [{"address": address, "balance": str(10**20 + n)} for n, address, _ in ROWS]
    columns = [{"name": "address", "type": "address"}, {"name": "balance", "type": "uint256"}]
    whole = {"id": "abc", "status": "completed", "columns": columns, "rows": rows}
    server.script("POST /v1/segment/execute", reply(whole))
    held = [(one["address"], 10**20 + n) for n, one in enumerate(rows, 1)]
    assert list(client.execute_segment({"a": 1}).itertuples(index=False, name=None)) == held
    for ending, read in {
        "csv": lambda path: pd.read_csv(path, dtype=str),
        "json": lambda path: pd.DataFrame(json.loads(path.read_text())),
        "parquet": pd.read_parquet,
        "arrow": lambda path: pa.ipc.open_file(path).read_pandas(),
    }.items():
        path = tmp_path / f"rows.{ending}"
        made = client.execute_segment({"a": 1}, to=path)
        assert made.to_dict("records") == [
            {"file": str(path), "rows": 25, "bytes": path.stat().st_size}
        ]
        got = read(path)
        assert list(zip(got["address"], map(int, got["balance"]), strict=True)) == held
    server.script("POST /v1/segment/execute", reply({**whole, "rows": rows[:10], "total": 25}))
    with pytest.raises(ProtocolError, match="states 25 rows, but 10 came"):
        client.execute_segment({"a": 1}, to=tmp_path / "part.csv")
    assert not (tmp_path / "part.csv").exists()
