"""Every shape in which a service may answer is read right, or refused with what would read it."""

from __future__ import annotations

import contextlib
import io
import json
import sys

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from nbext.client.decode import State, Want
from nbext.client.remote import content
from nbext.client.remote.field_names import state_of
from nbext.client.remote.reading import Stranger
from nbext.errors import AmbiguousAnswer, ApiError, ConfigError, NbextError, NotFound, ProtocolError
from nbext.http.body import Incoming
from nbext.http.deadline import Deadline, Watch
from nbext.http.transport import Call
from nbext.settings import Secret

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
ROWS = [{"address": A, "n": 1}, {"address": B, "n": 2}]


def answer(body, content_type="application/json", status=200, **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    stream = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
    headers = {"Content-Type": content_type, "Content-Length": str(len(body)), **headers}
    watch = Watch(Deadline(60))
    return Incoming(status, headers, "http://h/x", stream, watch=watch, cap=10**9, report=None)


def decoded(came, want, remote=None):
    call = Call("GET", "x", Deadline(60))
    return Stranger(remote or {}, "h", Secret("a-key")).read(came, want, call)


def rows(reading):
    return reading.records if reading.table is None else reading.table.to_pylist()


# ------------------------------------------------------------------ tables


@pytest.mark.parametrize(
    "body",
    [
        ROWS,
        {"data": ROWS},
        {"results": ROWS, "count": 2},
        {"items": ROWS},
        {"rows": ROWS},
        {"wallets": ROWS},
        {"owners": ROWS},
        {"anything": ROWS},
        {"data": {"rows": ROWS}},
        {"data": {"result": {"items": ROWS}}},
        {"status": "success", "data": {"wallets": ROWS, "total": 2}},
        {"columns": ["address", "n"], "rows": [[A, 1], [B, 2]]},
        {
            "columns": [{"name": "address", "type": "string"}, {"name": "n"}],
            "rows": [[A, 1], [B, 2]],
        },
        {"data": {"header": ["address", "n"], "values": [[A, 1], [B, 2]]}},
        {"preview": ROWS[:1], "rows": ROWS},
        {"top": ROWS[:1], "rows": ROWS},
        {"rows": ROWS, "warnings": ["w"], "columns": [{"name": "address"}, {"name": "n"}]},
        json.dumps(ROWS),
        json.dumps(json.dumps({"data": ROWS})),
        {"statusCode": 200, "body": json.dumps(ROWS)},
        {"statusCode": 200, "headers": {}, "body": {"data": ROWS}},
        {"data": [{"type": "wallet", "id": "1", "attributes": row} for row in ROWS]},
    ],
)
def test_rows_are_found_wherever_they_stand(body):
    found = rows(decoded(answer(body), Want.TABLE))
    assert [{"address": row["address"], "n": row["n"]} for row in found] == ROWS


@pytest.mark.parametrize(
    "body", [[A, B], {"wallets": [A, B]}, {"data": {"addresses": [A, B]}, "count": 2}]
)
def test_a_list_of_addresses_is_a_table_of_one_column(body):
    assert rows(decoded(answer(body), Want.TABLE)) == [{"address": A}, {"address": B}]


def test_lists_without_names_get_numbered_columns():
    assert rows(decoded(answer({"rows": [[A, 1]]}), Want.TABLE)) == [{"column_1": A, "column_2": 1}]


def test_a_row_that_has_more_fields_than_others_without_an_address_is_a_row():
    body = [{"name": "a", "n": 1}, {"name": "b", "n": 2}, {"name": "c", "n": 3, "note": "x"}]
    for sent in (body, body[::-1]):
        assert [row["name"] for row in rows(decoded(answer({"rows": sent}), Want.TABLE))] == [
            row["name"] for row in sent
        ]


def test_two_lists_of_rows_are_not_the_columns_of_one_table():
    for body in (
        {"left": [{"wallet": A}], "right": [{"wallet": B}]},
        {"data": {"left": [{"wallet": A}], "right": [{"wallet": B}]}},
        {"left": [[A, 1]], "right": [[B, 2]]},
        {"wallet": [A], "history": [[1, 2]]},
    ):
        with pytest.raises((AmbiguousAnswer, ProtocolError), match=r"candidates|left|history"):
            decoded(answer(body), Want.TABLE)


@pytest.mark.parametrize("body", [[], {"data": []}, {"result": {"rows": []}}])
def test_no_rows_are_a_table_without_rows(body):
    assert rows(decoded(answer(body), Want.TABLE)) == []


@pytest.mark.parametrize(
    "content_type",
    ["application/x-ndjson", "application/jsonl", "text/plain", "application/octet-stream", ""],
)
def test_one_object_a_line_is_a_table(content_type):
    body = "\n".join(json.dumps(row) for row in ROWS).encode() + b"\n"
    assert rows(decoded(answer(body, content_type), Want.TABLE)) == ROWS


CSV = f"address,n\r\n{A},1\r\n{B},2\r\n".encode()


@pytest.mark.parametrize(
    "content_type", ["text/csv; charset=utf-8", "application/csv", "text/plain", ""]
)
@pytest.mark.parametrize(
    "body", [CSV, b"\xef\xbb\xbf" + CSV, CSV.replace(b"\r\n", b"\n"), CSV.rstrip()]
)
def test_csv_is_read_as_text_under_any_name(content_type, body):
    found = decoded(answer(body, content_type), Want.TABLE)
    assert rows(found) == [{"address": A, "n": "1"}, {"address": B, "n": "2"}]


def test_a_nul_separates_no_values():
    found = decoded(answer(b"sep=\0\na\n", "text/csv"), Want.TABLE)
    assert rows(found) == [{"sep=\0": "a"}]


def test_the_comments_of_a_csv_are_read_without_all_that_is_below_them():
    body = b"# a\n" * 200 + b"address,n\n" + f"{A},1\n".encode() * 25_000
    looked_at = 0

    def count(frame, event, value):
        nonlocal looked_at
        if event == "call" and frame.f_code.co_filename == content.__file__:
            given = [one if isinstance(one, list) else [one] for one in frame.f_locals.values()]
            looked_at += sum(
                len(one) for some in given for one in some if isinstance(one, bytes | str)
            )

    sys.setprofile(count)
    try:
        found = decoded(answer(body, "text/csv"), Want.TABLE)
    finally:
        sys.setprofile(None)
    assert (found.rows, found.table.column_names) == (25_000, ["address", "n"])
    assert found.warnings == ["Above the header the answer says 'a'."] * 200
    assert looked_at < len(body), "each comment is looked at with a few lines below it"


def test_more_comments_than_anybody_writes_are_refused():
    body = "{}address,n\n{},1\n"
    found = decoded(answer(body.format("#\n" * 10_000, A).encode(), "text/csv"), Want.TABLE)
    assert rows(found) == [{"address": A, "n": "1"}]
    with pytest.raises(ProtocolError, match="more than 10,000 lines of comments above its header"):
        decoded(answer(body.format("#\n" * 10_001, A).encode(), "text/csv"), Want.TABLE)


@pytest.mark.parametrize("body", [b"address", b"address\n", b"address\r\n", b"address,n\n"])
def test_a_header_alone_is_a_table_without_rows(body):
    found = decoded(answer(body, "text/csv"), Want.TABLE)
    assert found.table.column_names == body.decode().strip().split(",")
    assert found.rows == 0


def test_one_column_of_csv_is_a_table():
    found = decoded(answer(f"address\n{A}\n{B}\n".encode(), "text/plain"), Want.SEGMENT)
    assert rows(found) == [{"address": A}, {"address": B}]


@pytest.mark.parametrize(
    ("body", "candidates"),
    [
        ({"wallets": ROWS, "tokens": ROWS}, ["wallets", "tokens"]),
        ({"data": {"a b": ROWS, "c": ROWS[:1]}}, ['data."a b"', "data.c"]),
        ({"data": [], "items": ROWS}, ["data", "items"]),
        ({"wallets": [A], "owners": [B]}, ["wallets", "owners"]),
        ({'a\x1b\u202e"': ROWS, "c": ROWS[:1]}, ['"a\\u001b\\u202e\\""', "c"]),
    ],
)
def test_of_two_tables_none_is_taken_and_the_line_that_chooses_is_told(body, candidates):
    with pytest.raises(AmbiguousAnswer) as caught:
        decoded(answer(body), Want.TABLE)
    assert caught.value.candidates == candidates
    assert caught.value.setting in str(caught.value)
    assert str(caught.value).isprintable()
    # The line does what it says.
    import tomllib

    remote = tomllib.loads(caught.value.setting)["remote"]
    assert rows(decoded(answer(body), Want.TABLE, remote)) is not None


@pytest.mark.parametrize(
    "body",
    [
        None,
        True,
        42,
        "ok",
        [1, None],
        [1, 2, 3],
        [ROWS[0], None],
        {"a": 1},
        {"preview": ROWS, "id": "x"},
        {"top": ROWS},
        {"data": {"address": [A, B], "n": [1, 2]}},
        {"rows": [[1, 2], [3]]},
        {"columns": ["a"], "rows": [[1, 2]]},
        {"columns": ["a", "a"], "rows": [[1, 2]]},
    ],
)
def test_what_is_no_table_is_refused(body):
    with pytest.raises(ProtocolError):
        decoded(answer(body), Want.TABLE)


def test_odd_names_stay_columns():
    row = {"index": 1, "values": 2, "T": 3, "": 4, "__proto__": 5}
    assert rows(decoded(answer([row]), Want.TABLE)) == [row]


# ------------------------------------------------------------------ jobs


@pytest.mark.parametrize(
    "body",
    [
        "seg-1",
        {"id": "seg-1"},
        {"segmentId": "seg-1"},
        {"segment_id": "seg-1"},
        {"executionId": "seg-1"},
        {"jobId": "seg-1", "id": "seg-1"},
        {"id": "seg-1", "query-id": "of what was asked"},
        {"data": {"id": "seg-1"}},
        {"result": {"segment": {"id": "seg-1"}}},
        {"segment": {"id": "seg-1"}},
        {"data": {"type": "segment", "id": "seg-1", "attributes": {"status": "queued"}}},
        {"statusCode": 202, "body": '{"jobId": "seg-1"}'},
    ],
)
def test_an_id_is_found_wherever_it_stands(body):
    assert decoded(answer(body), Want.SEGMENT).id == "seg-1"


def test_a_bare_id_as_text_is_an_id():
    assert decoded(answer(b"seg-1\n", "text/plain"), Want.SEGMENT).id == "seg-1"


def test_a_number_as_id_is_taken_as_its_digits():
    assert decoded(answer({"id": 2**70}), Want.SEGMENT).id == str(2**70)


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_an_accepted_segment_is_found_in_location(body):
    found = decoded(answer(body, status=202, Location="/v1/segment/seg-1?x=1"), Want.SEGMENT)
    assert (found.id, found.state) == ("seg-1", State.RUNNING)


def test_two_ids_are_ambiguous():
    with pytest.raises(AmbiguousAnswer) as caught:
        decoded(answer({"id": "a", "jobId": "b"}), Want.SEGMENT)
    assert caught.value.candidates == ["id", "jobId"]


@pytest.mark.parametrize("odd", ["a/b", "../x", "x" * 129, "a b", "é", "%2e", "a?b#c", "ns:1"])
def test_an_id_may_have_any_characters_that_can_be_seen(odd):
    assert decoded(answer({"id": odd}), Want.SEGMENT).id == odd


@pytest.mark.parametrize("bad", [".", "..", "x" * 513, "a\nb", "a\0", "\u202ex", "\u200b"])
def test_an_id_that_could_not_stand_in_a_path_is_refused(bad):
    with pytest.raises(ProtocolError):
        decoded(answer({"id": bad}), Want.SEGMENT)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("completed", State.COMPLETED),
        ("COMPLETE", State.COMPLETED),
        ("JOB_STATE_SUCCEEDED", State.COMPLETED),
        ("Done", State.COMPLETED),
        ("finished", State.COMPLETED),
        ("QueryState.FINISHED", State.COMPLETED),
        ("FAILED", State.FAILED),
        ("error", State.FAILED),
        ("TIMED_OUT", State.TIMED_OUT),
        ("timeout", State.TIMED_OUT),
        ("canceled", State.CANCELLED),
        ("Cancelled", State.CANCELLED),
        ("expired", State.EXPIRED),
        ("queued", State.RUNNING),
        ("IN_PROGRESS", State.RUNNING),
        ("not ready", State.RUNNING),
        ("partially_completed", None),
        ("??", None),
        ("", None),
        ("zzz", None),
    ],
)
def test_status_words_of_any_vendor_are_understood(word, state):
    assert state_of(word) is state


def test_the_innermost_status_is_the_jobs():
    found = decoded(
        answer({"status": "success", "data": {"id": "x", "status": "RUNNING"}}), Want.SEGMENT
    )
    assert (found.state, found.word) == (State.RUNNING, "RUNNING")


def wide(names: int, **last):
    return {**{f"f{number}": number for number in range(names)}, **last}


@pytest.mark.parametrize(
    ("said", "word", "state"),
    [
        ({"status": {"status": {"state": {"name": "done"}}}}, "done", State.COMPLETED),
        ({"status": {"status": {"state": {"name": {"value": "done"}}}}}, None, None),
        ({"status": wide(49, state="done")}, "done", State.COMPLETED),
        ({"status": wide(50, state="done")}, None, None),
        ({"progress": wide(48, done=10, total=10)}, None, State.COMPLETED),
        ({"progress": wide(49, done=10, total=10)}, None, None),
    ],
)
def test_a_state_is_looked_for_three_levels_deep_and_among_fifty_names(said, word, state):
    found = decoded(answer({"id": "x", **said}), Want.SEGMENT)
    assert (found.word, found.state) == (word, state)


def test_rows_of_a_segment_that_still_runs_are_not_the_answer():
    found = decoded(answer({"id": "x", "status": "running", "rows": ROWS}), Want.SEGMENT)
    assert (found.rows, found.state) == (None, State.RUNNING)


@pytest.mark.parametrize(
    "body",
    [
        "https://files.example/x.csv",
        {"url": "https://files.example/x.csv"},
        {"data": {"downloadUrl": "https://files.example/x.csv"}},
    ],
)
def test_an_address_of_a_file_is_found(body):
    assert decoded(answer(body), Want.SEGMENT).url == "https://files.example/x.csv"


def test_two_addresses_are_ambiguous():
    with pytest.raises(AmbiguousAnswer):
        decoded(answer({"csvUrl": "https://a/x", "jsonUrl": "https://a/y"}), Want.SEGMENT)


# ------------------------------------------------------------------ errors and records


@pytest.mark.parametrize(
    "body",
    [
        {"error": "no"},
        {"error": {"message": "no"}},
        {"errors": ["no"]},
        {"success": False, "message": "no"},
        {"ok": False, "error": "no"},
        {"status": "error", "message": "no"},
        {"data": {"error": "no"}},
        {"statusCode": 500, "body": '{"message": "no"}'},
    ],
)
@pytest.mark.parametrize("want", list(Want))
def test_an_error_inside_a_200_is_an_error(body, want):
    with pytest.raises(ApiError, match="no"):
        decoded(answer(body), want)


def test_a_status_inside_the_body_says_which_error_it_is():
    with pytest.raises(NotFound):
        decoded(answer({"statusCode": 404, "body": "{}"}), Want.TABLE)


RECORD = {"address": A, "symbol": "NA", "decimals": 18}


@pytest.mark.parametrize(
    "body",
    [
        RECORD,
        [RECORD],
        {"data": RECORD},
        {"token": RECORD},
        {"result": {"token": RECORD}},
        {"data": [RECORD]},
        {"data": {"type": "token", "attributes": RECORD}},
        json.dumps(RECORD),
        {"statusCode": 200, "body": RECORD},
    ],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_one_record_is_found_in_its_wrappers(body, content_type):
    assert rows(decoded(answer(body, content_type), Want.RECORD)) == [RECORD]


@pytest.mark.parametrize(
    "body", [[], [RECORD, RECORD], {}, None, "x", 7, {"data": None, "x": []}, {"data": []}]
)
def test_no_record_or_several_are_refused(body):
    with pytest.raises(ProtocolError):
        decoded(answer(body), Want.RECORD)


@pytest.mark.parametrize(
    "body", [b"", b"{}", b'{"email": "a@b.co"}', b'"success"', b'"accepted"', b"[1]", b"7"]
)
def test_any_receipt_will_do(body):
    assert decoded(answer(body, status=202), Want.RECEIPT).records is None


# ------------------------------------------------------------------ settings


def test_the_settings_say_where_things_stand():
    remote = {"paths": {"id": "job.handle", "status": "job.mood", "rows": "out[0].owners"}}
    body = {"job": {"handle": "h-1", "mood": "done"}, "out": [{"owners": ROWS}], "other": ROWS}
    found = decoded(answer(body), Want.SEGMENT, remote)
    assert (found.id, found.state, rows(found)) == ("h-1", State.COMPLETED, ROWS)


def test_a_path_to_a_segments_rows_leaves_records_that_have_none_where_they_are():
    overrides = {"paths": {"rows": "out[0].owners"}}
    assert decoded(answer({"address": A, "name": "x"}), Want.RECORD, overrides).records == [
        {"address": A, "name": "x"}
    ]
    assert (
        decoded(answer({"out": [{"owners": ROWS[:1]}]}), Want.RECORD, overrides).records == ROWS[:1]
    )


@pytest.mark.parametrize("body", [b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[" * 100_000, b"\xff"])
def test_what_cannot_be_read_is_an_error_of_the_tree_and_no_private_one(body):
    with pytest.raises(ProtocolError) as caught:
        decoded(answer(body), Want.TABLE)
    assert type(caught.value) is ProtocolError


def test_a_path_to_an_error_raises_it():
    with pytest.raises(ApiError, match="too poor"):
        decoded(
            answer({"rows": ROWS, "oops": "too poor"}), Want.TABLE, {"paths": {"error": "oops"}}
        )


@pytest.mark.parametrize(
    "remote",
    [
        {"path": {}},
        {"paths": {"row": "x"}},
        {"paths": {"rows": "a["}},
        {"paths": {"rows": "abs(@)"}},
    ],
)
def test_settings_that_make_no_sense_are_refused(remote):
    with pytest.raises(ConfigError, match=r"remote\.path"):
        decoded(answer({"x": ROWS}), Want.TABLE, remote)


# ------------------------------------------------------------------ decoding


def deep(opening, closing):
    return (opening * 100_000 + closing * 100_000).encode()


@pytest.mark.parametrize(
    "body", [deep("[", "]"), deep('{"a":', "}").replace(b"{}", b"{1}"), b"[" * 100_000]
)
def test_depth_is_an_error_of_ours(body):
    for want in set(Want) - {Want.RECEIPT}:
        with pytest.raises(ProtocolError):
            decoded(answer(body), want)


def test_depth_that_json_still_takes_is_no_crash():
    body = (b'{"data":' * 900) + b"1" + b"}" * 900
    for want in (Want.SEGMENT, Want.TABLE):
        with pytest.raises(ProtocolError):
            decoded(answer(body), want)


@pytest.mark.slow
def test_an_object_of_more_names_than_any_wrapper_or_record_has_is_refused():
    many = {f"k{number}": number for number in range(20_000)}
    for want in set(Want) - {Want.RECEIPT}:
        for body in (many, {"data": many}):
            with pytest.raises(ProtocolError):
                decoded(answer(body), want)
    keyed = {f"0x{number:040x}": {"n": number} for number in range(20_000)}
    assert len(rows(decoded(answer({"data": keyed}), Want.TABLE))) == 20_000


def test_a_byte_order_mark_is_taken_and_a_nul_kept():
    assert rows(decoded(answer(b'\xef\xbb\xbf[{"a": "x\\u0000y"}]'), Want.TABLE)) == [{"a": "x\0y"}]


def test_half_a_character_is_replaced_with_a_warning():
    found = decoded(answer(b'[{"a": "x\\ud800y"}]'), Want.TABLE)
    assert rows(found) == [{"a": "x\ufffdy"}]
    assert len(found.warnings) == 1


@pytest.mark.parametrize(
    "body",
    [
        '[{"a": "é"}]'.encode("latin-1"),
        b'[{"a": "\xff"}]',
        b'[{"a": 1, "a": 2}]',
        b'[{"a": 1}] x',
        b'[{"a": 1}][{"a": 2}]',
        b'{"a": 1}{"a": 2}',
        b")]}'\n[]",
        b'cb([{"a": 1}])',
        b'[{"a": NaN}]',
        b'[{"a": Infinity}]',
        b"[1" + b"0" * 5000 + b"]",
    ],
)
def test_what_is_not_one_json_document_is_refused(body):
    with pytest.raises(ProtocolError):
        decoded(answer(body), Want.TABLE)


def test_numbers_are_exact():
    from decimal import Decimal

    body = b'[{"a": 115792089237316195423570985008687907853269984665640564039457584007913129639935, "b": 0.1}]'
    assert rows(decoded(answer(body), Want.TABLE)) == [{"a": 2**256 - 1, "b": Decimal("0.1")}]


def test_csv_keeps_every_text_as_it_is():
    long = "x" * 200_000
    lines = [
        "NA",
        "null",
        "NaN",
        "None",
        "00012",
        "0x10",
        "1e3",
        '"a ""b"" c"',
        '"two\nlines"',
        long,
        '""',
        "true",
    ]
    body = ("symbol,n\n" + "".join(f"{line},7\n" for line in lines)).encode()
    found = [row["symbol"] for row in rows(decoded(answer(body, "text/csv"), Want.TABLE))]
    assert found == [
        "NA",
        "null",
        "NaN",
        "None",
        "00012",
        "0x10",
        "1e3",
        'a "b" c',
        "two\nlines",
        long,
        "",
        "true",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"a,b\n1\n",
        b"a,b\n1,2,3\n",
        b"a,a\n1,2\n",
        b"0x1234567890,5\n0xabcdef1234,6\n",
        b"a,b\r1,2\r",
        b'a,b\n"1,2\n',
        b'a\n"1\n',
        b"<html>",
        b'{"a": 1}',
        b"[]",
        b"",
        b"\n",
        b"a,\n1,2\n",
        b"a,b\n\xff,2\n",
    ],
)
def test_what_is_no_csv_is_refused_with_its_line(body):
    with pytest.raises(ProtocolError, match=r"line \d|without even a header"):
        decoded(answer(body, "text/csv"), Want.TABLE)


NAMES = [
    "id",
    "data",
    "rows",
    "status",
    "error",
    "next",
    "total",
    "x",
    "body",
    "columns",
    "statusCode",
    "url",
    "segment",
    "attributes",
    "page",
    "offset",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(list(Want)), st.sampled_from([200, 202, 500]))
def test_any_document_is_read_or_refused_by_an_error_of_ours(document, want, status):
    try:
        found = decoded(answer(document, status=status), want)
    except NbextError:
        return
    # What runs is asked for again, by its id or where an earlier answer said.
    assert (
        want is Want.RECEIPT
        or found.rows is not None
        or found.id
        or found.url
        or found.state is State.RUNNING
    )


@given(
    st.binary(max_size=200),
    st.sampled_from(["", "text/csv", "application/json", "application/jsonl"]),
)
def test_any_bytes_are_read_or_refused_by_an_error_of_ours(body, content_type):
    for want in Want:
        with contextlib.suppress(NbextError):
            decoded(answer(body, content_type), want)
