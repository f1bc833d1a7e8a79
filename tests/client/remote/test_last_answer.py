"""What is remembered of a stranger's last answer: names, types and counts, and the settings that would read it."""

from __future__ import annotations

import base64
import contextlib
import gzip
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nbext import Client
from nbext.errors import AmbiguousAnswer, BadRequest, NbextError, NotFound, ProtocolError
from nbext.http.errors import redacted
from nbext.settings import Secret
from tests.client.conftest import KEY
from tests.client.faultserver import reply

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
JOB = {
    "auftrag": {"nummer": 4711, "zustand": "LAEUFT", "posten": [{"x": 1}, {"x": None}]},
    "note": KEY,
}
OUTLINE = """\
{url}/v1/segment/abc: 200, application/json, {size} bytes, read as segment
auftrag             object
auftrag.nummer      integer
auftrag.zustand     text
auftrag.posten      list of 2
auftrag.posten[]    object
auftrag.posten[].x  integer or null
note                text
header:X-Job-Url    text

Read as:
  rows    2  (auftrag.posten)

Lines that would read it otherwise:
  %nbext set remote.segment.paths.rows = "auftrag.posten"
  %nbext set remote.segment.paths.id = "auftrag.nummer"
  %nbext set remote.segment.paths.status = "auftrag.zustand"
  %nbext set remote.segment.paths.url = "header:X-Job-Url"
  %nbext set remote.segment.paths.poll = "header:X-Job-Url"
"""


def test_an_answer_is_outlined_without_its_values(server, client):
    sent = reply(JOB, X_Job_Url="/jobs/4711?signature=s3cret")
    server.script("GET /v1/segment/abc", sent)
    client.segment("abc")
    size = len(sent.split(b"\r\n\r\n")[1])
    assert client.outline.text() + "\n" == OUTLINE.format(url=server.url, size=size)


def test_values_are_shown_when_asked_for_short_visible_and_without_the_key(server, client):
    server.script(
        "GET /v1/segment/abc",
        reply({"rows": [{"name": "a\u202e\x1b[31m" + "x" * 500}], "note": f"{KEY}!"}),
    )
    client.segment("abc")
    lines = client.outline.text(values=True).splitlines()
    assert lines[3] == r"rows[].name  text  'a\u202e\x1b[31m" + "x" * 53 + "'… (507 characters)"
    assert lines[4] == "note         text  '***!'"
    assert KEY not in repr(client.outline)


def test_an_error_with_a_fraction_in_it_is_the_service_s_own_and_is_outlined(server, client):
    server.script("POST /v1/search", reply({"detail": "too poor", "cost": 0.4}, 400))
    with pytest.raises(BadRequest) as caught:
        client.search_nfts("ape")
    assert str(caught.value) == "The service answered 400: too poor"
    assert client.outline.text(values=True).splitlines()[1:3] == [
        "detail  text  'too poor'",
        "cost    number  '0.4'",
    ]


def test_an_error_of_a_gateway_is_outlined_by_the_service_s_own_in_it(server, client):
    inner = {"statusCode": 400, "body": '{"detail": "too poor"}'}
    server.script("POST /v1/search", reply(inner, 400))
    with pytest.raises(BadRequest):
        client.search_nfts("ape")
    assert client.outline.text(values=True).splitlines()[1] == "detail  text  'too poor'"


def test_an_error_names_its_candidates_and_where_to_look(server, client):
    server.script("POST /v1/search", reply({"auftrag": {"nummer": 4711}, "preis": 5}))
    with pytest.raises(ProtocolError, match=r"`%nbext last-answer` shows the answer's fields"):
        client.search_nfts("ape")
    server.script("POST /v1/search", reply({"wallets": [{"a": 1}], "tokens": [{"b": 2}]}))
    with pytest.raises(AmbiguousAnswer) as caught:
        client.search_nfts("ape")
    assert "wallets, tokens" in str(caught.value)
    assert str(caught.value).endswith(
        "`%nbext last-answer` shows the answer's fields and the lines of settings that read them."
    )


def test_of_several_fields_the_one_that_has_the_very_name_is_offered_first(server, client):
    server.script(
        "GET /v1/segment/q-7", reply({"ticket": "t-9", "queryId": "q-7", "rows": [{"a": 1}]})
    )
    client.segment("q-7")
    assert client.outline.lines("id")[0] == 'remote.segment.paths.id = "queryId"'


def test_an_error_of_the_service_is_remembered_and_one_of_the_network_is_not(server, settings):
    client = Client(server.url, KEY, settings=settings(attempts=1))
    server.script("*", reply({"detail": f"no {KEY}"}, 404))
    with pytest.raises(NotFound):
        client.segment("abc")
    assert client.outline.text().splitlines() == [
        "/v1/segment/abc: 404, no content type, read as segment",
        "detail  text",
        "",
        "Read as:",
        "  The service answered 404: no ***",
    ]
    server.script("*", [b"garbage\r\n\r\n", None])
    with pytest.raises(ProtocolError) as caught:
        client.segment("abc")
    assert "last-answer" not in str(caught.value)


def test_our_own_services_answers_are_not_remembered(server, settings):
    ours = Client(server.url, KEY, settings=settings(), restart=lambda: None)
    server.script("*", reply({"address": A, "symbol": "NA"}))
    ours.tokens("ethereum", A)
    assert ours.outline is None


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"address\tn\n0x1\t2\n", "[].address  text"),
        ("address;n\n0x1;2\n".encode("utf-16"), "[].n        text"),
        (gzip.compress(b"address,n\n0x1,2\n", mtime=0), "[].address  text"),
        (b"PK\x03\x04 a sheet", "(beginning)  text"),
        (b"# made today\naddress,n\n", "[].address  text"),
    ],
    ids=["tabs", "16 bits", "packed", "a sheet", "a remark"],
)
def test_an_answer_that_is_no_json_has_an_outline_too(server, client, body, line):
    server.script("GET /v1/segment/abc", reply({}, 404))
    server.script("GET /v1/segment/abc/csv", reply(body, content_type="text/csv"))
    with contextlib.suppress(NbextError):
        client.export_csv("abc")
    assert line in client.outline.text().splitlines()


@pytest.mark.slow
def test_a_wide_and_deep_answer_is_bounded(server, client):
    deep = {"a": 1}
    for _ in range(40):
        deep = {"in": deep}
    wide = {f"field_{i}": ["x" * 10_000] for i in range(5_000)}
    server.script("GET /v1/segment/abc", reply({"rows": [{"a": 1}] * 20_000, "deep": deep, **wide}))
    client.segment("abc")
    text = client.outline.text(values=True)
    assert len(text) < 30_000
    assert "list of 20,000" in text
    assert "... (the answer has more fields)" in text


@pytest.mark.slow
def test_the_key_is_stars_wherever_it_stands_in_an_answer(server, client):
    spelled = {
        "plain": KEY,
        "upper": KEY.upper(),
        "lower": KEY.lower(),
        "packed": base64.b64encode(KEY.encode()).decode(),
        "user": base64.b64encode(f"me:{KEY}".encode()).decode(),
        "name": base64.b64encode(f"name:{KEY}:more".encode()).decode(),
        "escaped": quote(KEY, safe=""),
        "begun": KEY[: len(KEY) // 2],
        "ended": KEY[len(KEY) // 2 :],
    }
    leaks = []
    for how, key in spelled.items():
        bodies = {
            "value": reply({"rows": [{"a": key}], "note": key}),
            "name": reply({"rows": [{key: 1}], key: {key: 1}}),
            "path": reply({"rows": {"x": [{f"a{key}z": 1}]}}),
            "header": reply({"rows": []}, **{"X_Seen": key, f"X_{key.strip('=%')}": "1"}),
            "status": reply({"rows": [], "id": "x1", "status": key}),
            "text": reply(f"it is {key}".encode(), content_type="text/plain"),
            "csv": reply(f"address,{key}\n0x1,2\n".encode(), content_type="text/csv"),
            "refused": reply({"detail": f"no {key}", key: 1}, 400),
            "status line": b"HTTP/1.1 200 " + key.encode() + b"\r\nContent-Length: 2\r\n\r\n{}",
        }
        for where, body in bodies.items():
            server.script("*", body)
            for call in (lambda: client.segment("abc"), lambda: client.export_csv("abc")):
                with contextlib.suppress(NbextError):
                    call()
                text = client.outline.text(values=True) + client.outline.advice(("id", "rows"))
                if key[1:-3].lower() in text.lower():
                    leaks.append((how, where))
    assert leaks == []


@given(
    st.text(st.characters(codec="ascii", exclude_categories=("C", "Z")), min_size=12, max_size=40),
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 12),
)
def test_no_spelling_of_a_key_leaves_a_text(secret, before, after, cut):
    assume(secret[:6] not in before + after and secret[-6:] not in before + after)
    inside = f"{before}{secret}{after}"
    for text in (inside, inside.upper(), base64.b64encode(inside.encode()).decode()):
        assert secret not in (told := redacted(text, Secret(secret)))
        assert base64.b64encode(secret.encode()).decode()[:12] not in told
    # As long as six characters of an end are there, nothing of them is left.
    for part in (secret[: len(secret) - cut], secret[cut:]):
        if len(part) >= 6:
            assert redacted(f"\n{part}\n", Secret(secret)) == "\n***\n"
