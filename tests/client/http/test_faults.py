"""Every fault of a service ends, before the deadline, in the exact rows or in one typed error."""

from __future__ import annotations

import copy
import gzip
import multiprocessing
import os
import pickle
import random
import resource
import signal
import socket
import threading
import time
import zlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import product

import pytest

from nbext import Client
from nbext.errors import (
    ApiError,
    AuthError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    NbextError,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    QueryCancelled,
    RateLimited,
    ResponseTooLarge,
    SegmentFailed,
    ServerError,
    TLSError,
    TransportError,
    TruncatedResponse,
    ValidationError,
)
from nbext.http.transport import MAX_RETRIES, REGAINED
from tests import slow
from tests.client.conftest import KEY
from tests.client.faultserver import RESET, FaultServer, as_arrow, reply

ADDRESS = "0x" + "ab" * 20
TOKEN = {"address": ADDRESS, "symbol": "NA", "decimals": 18}
ROWS = [{"address": "0x" + f"{i:040x}", "UNI_balance": str(10**i)} for i in range(3)]
TOKEN_PATH = f"GET /v1/tokens/ethereum/{ADDRESS}"
EXECUTE = "POST /v1/segment/execute"
DEADLINE = 1.0


@pytest.fixture
def quick(server, settings, monkeypatch):
    """A client with a short deadline that does not dawdle between attempts."""
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("nbext.client.segment_run.FIRST_POLL", 0.01)
    return Client(
        server.url,
        KEY,
        settings=settings(deadline=DEADLINE, execute_deadline=DEADLINE, max_body_mb=64),
    )


def within_deadline(call):
    began = time.monotonic()
    try:
        return call()
    finally:
        # Generous: a machine that is busy wakes a thread late. Without a deadline these calls never end.
        assert time.monotonic() - began < DEADLINE + 10


def raw(*parts):
    return list(parts)


# ------------------------------------------------------------------ statuses


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_passing_fault_is_retried_when_reading(server, quick, status):
    server.script(TOKEN_PATH, reply({}, status), reply(TOKEN))
    assert quick.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"]
    assert len(server.requests) == 2


def test_a_retry_leaves_the_notebooks_random_numbers_alone(server, quick):
    server.script(TOKEN_PATH, reply({}, 503), reply(TOKEN))
    before = random.getstate()
    quick.tokens("ethereum", ADDRESS)
    assert len(server.requests) == 2
    assert random.getstate() == before


@pytest.mark.parametrize("status", [429, 502, 503])
def test_a_segment_that_was_refused_is_asked_for_again_under_the_same_key(server, quick, status):
    server.script(EXECUTE, reply({}, status), reply({}, status), reply(ROWS))
    assert quick.execute_segment({"a": 1})["UNI_balance"].tolist() == ["1", "10", "100"]
    keys = [r.headers["idempotency-key"] for r in server.asked("/v1/segment/execute")]
    assert len(keys) == 3
    assert len(set(keys)) == 1


@pytest.mark.parametrize("status", [408, 425, 500, 504])
def test_a_segment_on_a_remote_is_not_repeated_when_it_may_have_run(server, quick, status):
    server.script(EXECUTE, reply({"detail": "late"}, status), reply(ROWS))
    with pytest.raises(OutcomeUnknown) as caught:
        quick.execute_segment({"a": 1})
    key = server.requests[0].headers["idempotency-key"]
    assert (caught.value.idempotency_key, len(server.requests)) == (key, 1)
    assert f"The service answered {status}: late" in str(caught.value)
    assert "attempts" not in str(caught.value)
    assert str(caught.value).endswith(
        "The query may have run, and nbext did not send it again. Running it again only costs a query. If the service "
        f"honours Idempotency-Key (this one was {key}), `%nbext set remote.idempotent true` repeats it."
    )


@pytest.mark.parametrize(
    "fault", [reply({}, 408), reply({}, 425), reply({}, 500), reply({}, 504), [RESET]]
)
@pytest.mark.parametrize("remote", [{"idempotent": True}, {"segment": {"idempotent": "true"}}])
def test_a_service_that_is_said_to_honour_the_key_is_asked_again_under_it(
    server, settings, monkeypatch, fault, remote
):
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.01)
    server.script(EXECUTE, fault, reply(ROWS))
    told = Client(server.url, KEY, settings=settings(remote=remote))
    assert len(told.execute_segment({"a": 1})) == 3
    keys = [request.headers["idempotency-key"] for request in server.asked("/v1/segment/execute")]
    assert len(keys) == 2
    assert len(set(keys)) == 1


@pytest.mark.parametrize("status", [408, 425, 500, 504])
def test_a_sign_up_that_may_have_been_recorded_is_not_sent_again(server, settings, status):
    server.script("*", reply({}, status))
    told = Client(server.url, KEY, settings=settings(remote={"idempotent": True}))
    with pytest.raises(
        OutcomeUnknown,
        match=r"The sign-up may have been recorded, and nbext did not send it again\.$",
    ):
        told.sign_up("someone@example.com")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 425, 500])
def test_a_segment_on_our_own_service_is_repeated_under_its_key(
    server, settings, status, monkeypatch
):
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.01)
    ours = Client(server.url, KEY, settings=settings(), restart=lambda: None)
    columns = [{"name": "address", "type": "string"}, {"name": "UNI_balance", "type": "uint256"}]
    links = {"arrow": "/v1/segment/seg-1/arrow"}
    done = job("completed", columns=columns, counts={"matched": 3, "returned": 3}, links=links)
    server.script(EXECUTE, reply({}, status), reply(done))
    server.script("GET /v1/segment/seg-1/arrow", as_arrow(ROWS))
    assert len(ours.execute_segment({"a": 1})) == 3
    assert len({r.headers["idempotency-key"] for r in server.asked("/v1/segment/execute")}) == 1


def test_a_lasting_fault_ends_after_three_attempts(server, quick):
    server.script("*", reply({"detail": "down for the night"}, 503))
    with pytest.raises(ServerError) as caught:
        within_deadline(lambda: quick.tokens("ethereum", ADDRESS))
    assert (caught.value.status, caught.value.attempts, len(server.requests)) == (503, 3, 3)
    assert str(caught.value) == "The service answered 503: down for the night (after 3 attempts)"


@pytest.mark.parametrize(
    "asked", ["-5", "soon", "", "Wed, 21 Oct 2015 07:28:00 GMT", "9" * 20, "1e3", "٣"]
)
def test_a_retry_after_without_sense_is_ignored(server, quick, asked):
    server.script(
        TOKEN_PATH, reply({}, 503, Retry_After=asked.encode().decode("latin-1")), reply(TOKEN)
    )
    assert len(quick.tokens("ethereum", ADDRESS)) == 1


NOW = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    slow.but_the_first(
        [
            ({"Retry_After": "0.5", "RateLimit_Reset": "9"}, 0.5),
            ({"X_RateLimit_Reset": "1445412480700", "Date": NOW}, 0.7),
            ({"Retry_After": "1"}, 1),
            ({"X_RateLimit_Reset": "0.6"}, 0.6),
            ({"RateLimit_Reset": "1"}, 1),
            ({"X_Rate_Limit_Reset": "1445412481", "Date": NOW}, 1),
            ({"Retry_After": "Wed, 21 Oct 2015 07:28:01 GMT", "Date": NOW}, 1),
        ],
        2,
    ),
)
def test_the_pause_that_a_service_asks_for_is_made(server, settings, headers, seconds):
    server.script(TOKEN_PATH, reply({}, 429, **headers), reply(TOKEN))
    patient = Client(server.url, KEY, settings=settings(deadline=5.0))
    began = time.monotonic()
    patient.tokens("ethereum", ADDRESS)
    assert seconds <= time.monotonic() - began < seconds + 4


@pytest.mark.parametrize("headers", [{"Retry_After": "120"}, {"X_RateLimit_Reset": "119.5"}])
def test_a_pause_beyond_the_deadline_is_told_at_once(server, settings, headers):
    patient = Client(server.url, KEY, settings=settings(deadline=60.0))
    server.script(TOKEN_PATH, reply({"detail": "slow down"}, 429, **headers), reply(TOKEN))
    began = time.monotonic()
    with pytest.raises(RateLimited) as caught:
        patient.tokens("ethereum", ADDRESS)
    assert str(caught.value) == (
        "The service answered 429: slow down. It asks to wait 120 s before the next request."
    )
    assert (time.monotonic() - began < 30, len(server.requests)) == (True, 1)


def test_the_reset_of_a_limit_that_is_not_exceeded_delays_nothing(server, quick):
    server.script(TOKEN_PATH, reply({}, 500, X_RateLimit_Reset="30"), reply(TOKEN))
    assert len(quick.tokens("ethereum", ADDRESS)) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, AuthError),
        (402, AuthError),
        (403, AuthError),
        (404, NotFound),
        (405, BadRequest),
        (409, Conflict),
        (410, NotFound),
        (413, BadRequest),
        (415, BadRequest),
        (422, BadRequest),
        (451, BadRequest),
    ],
)
def test_a_refusal_is_told_after_one_request(server, quick, status, kind):
    server.script("*", reply({"detail": "no"}, status))
    with pytest.raises(kind) as caught:
        quick.tokens("ethereum", ADDRESS)
    assert (type(caught.value), caught.value.status, len(server.requests)) == (kind, status, 1)
    assert str(caught.value) == f"The service answered {status}: no"


def test_errors_that_are_no_objects_are_told_as_words(server, quick):
    for errors, said in ((["too many"], "too many"), ([None, {"detail": 5}, ["x"]], "no")):
        body = {"code": "invalid", "detail": "no", "errors": errors}
        server.script("*", reply(body, 422))
        with pytest.raises(BadRequest) as caught:
            quick.execute_segment({})
        assert said in str(caught.value)


def test_errors_that_the_service_only_counted_are_told(server, quick):
    wrong = {"pointer": "/limit", "code": "range", "detail": "5 is too many."}
    server.script(
        "*",
        reply({"code": "invalid", "detail": "no", "errors": [wrong], "moreErrors": 99_980}, 422),
    )
    with pytest.raises(ValidationError) as caught:
        quick.tokens("ethereum", ADDRESS)
    assert str(caught.value) == "/limit: 5 is too many.\nand 99,980 more errors"


def test_a_refusal_that_echoes_the_key_shows_stars(server, quick):
    server.script("*", reply({"detail": f"bad key {KEY}", "given": [KEY]}, 401))
    with pytest.raises(AuthError) as caught:
        quick.tokens("ethereum", ADDRESS)
    assert str(caught.value) == "The service answered 401: bad key ***"
    assert caught.value.problem == {"detail": "bad key ***", "given": ["***"]}


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"x" * 5_000_000, "text/plain", "xxx"),
        (
            b"<html><title>Bad &amp; late</title><script>1</script></html>",
            "text/html",
            "an HTML page, 'Bad & late'",
        ),
        (
            b"<html><title>Bad <b>gateway</b></title><script>1</script></html>",
            "text/html",
            "an HTML page, 'Bad'",
        ),
        (b"", None, "without a reason"),
        (
            b'{"type":"x","title":"Not Found","detail":"no job"}',
            "application/problem+json",
            "answered 400: no job",
        ),
        (b'{"type":"about:blank","title":"Not Found"}', "application/problem+json", "Not Found"),
        (b'{"title":"Limit","detail":"too high"}', "application/json", "Limit: too high"),
        (
            b'{"detail":[{"loc":["body","limit"],"msg":"too big","type":"x"}]}',
            "application/json",
            "body.limit: too",
        ),
        (b"\x1b[31mred\x00 <i> & &lt;", "text/plain", r"\x1b[31mred\x00 <i> & &lt;"),
    ],
)
def test_any_error_body_becomes_a_short_message_of_text_that_is_not_escaped_as_html(
    server, quick, body, kind, said
):
    server.script("*", reply(body, 400, kind))
    with pytest.raises(BadRequest) as caught:
        quick.tokens("ethereum", ADDRESS)
    message = str(caught.value)
    assert said in message
    assert len(message) <= 500
    assert message.isprintable()
    assert "script" not in message


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply({"error": {"message": "no credit"}}), ApiError),
        (reply({"success": False, "message": "no credit"}), ApiError),
        (reply({"errors": [{"detail": "no credit"}]}), ApiError),
        (
            reply(b"<!DOCTYPE html><title>Hotel WiFi</title>", content_type="text/html"),
            ProtocolError,
        ),
        (reply(b"", 204, None), ProtocolError),
        (reply(b"", 200, None), ProtocolError),
    ],
)
def test_a_good_status_with_a_bad_body_is_never_a_table(server, quick, answer, kind):
    server.script("*", answer)
    for call in (
        lambda: quick.tokens("ethereum", ADDRESS),
        lambda: quick.search_nfts("ape"),
        lambda: quick.execute_segment({"a": 1}),
        lambda: quick.export_json("abc"),
        lambda: quick.export_csv("abc"),
        lambda: quick.segment("abc"),
    ):
        with pytest.raises(kind):
            call()


# ------------------------------------------------------------------ the wire


def dripping(_request=None):
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    while True:
        yield b" "
        yield 0.05


def dripping_head(_request=None):
    yield b"HTTP/1.1 200 OK\r\nX-Slow: "
    while True:
        yield b"a"
        yield 0.05


@pytest.mark.slow
@pytest.mark.parametrize("drip", [dripping, dripping_head, lambda _: [60.0]])
def test_a_call_ends_at_its_deadline_whatever_drips(server, quick, drip):
    server.handler = drip
    for call in (
        lambda: quick.tokens("ethereum", ADDRESS),
        lambda: quick.execute_segment({"a": 1}),
    ):
        with pytest.raises(DeadlineExceeded):
            within_deadline(call)
    assert len(server.requests) == 2


def test_a_dripping_csv_ends_at_its_deadline(server, settings):
    def drip(_request):
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nConnection: close\r\n\r\naddress\r\n"
        while True:
            yield b"0xab\r\n"
            yield 0.05

    server.handler = drip
    quick = Client(server.url, KEY, settings=settings(download_deadline=DEADLINE))
    with pytest.raises(DeadlineExceeded):
        within_deadline(lambda: quick.export_csv("abc"))


def test_a_broken_connection_after_the_action_is_told_and_not_repeated(server, quick):
    server.script(EXECUTE, [RESET])
    with pytest.raises(OutcomeUnknown) as caught:
        quick.execute_segment({"a": 1})
    assert len(server.requests) == 1
    assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]


def test_a_sign_up_is_never_sent_twice_when_it_may_have_arrived(server, quick):
    for fault in ([RESET], [b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", None]):
        server.requests.clear()
        server.script("POST /v1/signup/newsletter", fault)
        with pytest.raises(OutcomeUnknown):
            quick.sign_up("someone@example.com")
        assert len(server.requests) == 1


BODY = b'[{"address": "0x01"}, {"address": "0x02"}]'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    BODY
)
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE_CHUNKED = CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize("end", [None, RESET], ids=["closed", "reset"])
@pytest.mark.parametrize("whole", [HEAD + BODY, WHOLE_CHUNKED], ids=["length", "chunked"])
def test_an_answer_cut_at_any_byte_is_asked_for_again(server, quick, whole, end):
    for cut in [*range(1, len(whole) - 5, 11), len(whole) - 6]:
        server.requests.clear()
        server.script("GET /v1/segment/abc/json", [whole[:cut], end], whole)
        server.script("GET /v1/segment/abc", reply({}, 404))
        quick._transport.retries = MAX_RETRIES
        try:
            assert quick.export_json("abc")["address"].tolist() == ["0x01", "0x02"], cut
        except ProtocolError:
            # A first line or header that was cut is no HTTP.
            assert cut < len(HEAD), cut


@pytest.mark.parametrize("cut", [HEAD + BODY[:20], CHUNKED + b"%x\r\n%s\r\n" % (len(BODY), BODY)])
def test_an_answer_that_is_always_cut_is_an_error_and_never_fewer_rows(server, quick, cut):
    server.script("GET /v1/segment/abc/json", [cut, None])
    server.script("GET /v1/segment/abc", reply({}, 404))
    with pytest.raises(TruncatedResponse):
        quick.export_json("abc")
    assert len(server.requests) == 4


def test_a_csv_that_is_cut_is_an_error_and_never_fewer_rows(server, quick, tmp_path):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\n"
    server.script("GET /v1/segment/abc/csv", [head + b"address\r\n0x01\r\n", None])
    server.script("GET /v1/segment/abc", reply({}, 404))
    for to in (None, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        with pytest.raises(TruncatedResponse):
            quick.export_csv("abc", to=to)
    assert list(tmp_path.glob("*rows*")) == []


def test_junk_after_an_answer_is_never_the_next_ones(server, quick):
    smuggled = reply({"address": "SMUGGLED-REPLY", "symbol": "SMUGGLED-REPLY"})
    for junk in ([reply(TOKEN) + smuggled], [reply(TOKEN), 0.02, smuggled]):
        server.script(TOKEN_PATH, junk, reply(TOKEN))
        for _ in range(3):
            assert quick.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"]
            time.sleep(0.05)


def test_a_connection_that_went_stale_in_the_pool_is_no_error(server, quick):
    server.script("*", [reply(TOKEN), None])
    for _ in range(3):
        quick.tokens("ethereum", ADDRESS)
        time.sleep(0.02)
    assert len(server.requests) == 3


def test_what_is_only_read_is_asked_for_over_a_connection_that_is_there(server, quick):
    server.script(TOKEN_PATH, reply(TOKEN))
    for _ in range(5):
        quick.tokens("ethereum", ADDRESS)
    assert len({one.connection for one in server.requests}) < 5


def test_a_segment_never_rides_on_a_connection_that_lay_idle(server, quick):
    server.script(TOKEN_PATH, reply(TOKEN))
    server.script(EXECUTE, reply(ROWS))
    quick.tokens("ethereum", ADDRESS)
    quick.execute_segment({"a": 1})
    assert server.requests[0].connection != server.requests[1].connection


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n"
        + b"".join(b"X-%d: 1\r\n" % i for i in range(10_000))
        + b"Content-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX-Big: " + b"a" * 200_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 206 Part\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 101 Switching\r\n\r\n",
    ],
)
def test_what_is_not_http_is_a_typed_error(server, quick, answer):
    server.script("*", [answer, None])
    with pytest.raises((TransportError, ApiError)) as caught:
        within_deadline(lambda: quick.tokens("ethereum", ADDRESS))
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert len(server.requests) <= 3


# ------------------------------------------------------------------ packing and size


def packed(body, *encodings):
    return reply(body, Content_Encoding=", ".join(encodings))


def test_gzip_and_deflate_are_unpacked(server, quick):
    body = b'{"address": "0x", "symbol": "NA"}' + b" " * 100_000
    for answer in (
        packed(gzip.compress(body), "gzip"),
        packed(zlib.compress(body), "deflate"),
        packed(gzip.compress(gzip.compress(body)), "gzip", "gzip"),
        packed(gzip.compress(body[:50]) + gzip.compress(body[50:]), "gzip"),
    ):
        server.script(TOKEN_PATH, answer)
        assert quick.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"]


@pytest.mark.parametrize(
    "answer",
    [
        packed(b'{"address": "0x"}', "gzip"),
        packed(gzip.compress(b'{"address": "0x"}', mtime=0)[:-6], "gzip"),
        packed(b"x", "br"),
        packed(b"x", "zstd"),
    ],
)
def test_packing_that_is_wrong_or_cut_is_an_error(server, quick, answer):
    server.script("*", answer)
    with pytest.raises(ProtocolError):
        quick.tokens("ethereum", ADDRESS)


def bomb(layers):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = b"\0" * (1 << 20)
    body = b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()
    return body if layers == 1 else gzip.compress(body)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        lambda: packed(bomb(1), "gzip"),
        lambda: packed(bomb(2), "gzip", "gzip"),
        lambda: packed(b"x", *["gzip"] * 20),
        lambda: [
            b"HTTP/1.1 200 OK\r\nContent-Length: 300000000\r\n\r\n",
            *[b" " * (1 << 20)] * 286,
        ],
    ],
    ids=["gzip", "twice", "twenty", "plain"],
)
def test_a_bomb_is_refused_before_it_unfolds(server, settings, answer):
    held = Client(server.url, KEY, settings=settings(max_body_mb=64))
    server.script("*", answer())
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(ResponseTooLarge):
        held.tokens("ethereum", ADDRESS)
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    assert len(server.requests) == 1


# ------------------------------------------------------------------ redirects


def test_a_redirect_never_carries_the_key_to_another_origin(server, quick):
    other = FaultServer()
    other.script("*", reply(TOKEN))
    for status in (301, 302, 303, 307, 308):
        server.script("*", reply(b"", status, None, Location=f"{other.url}/elsewhere"))
        assert quick.tokens("ethereum", ADDRESS, refresh=True)["symbol"].tolist() == ["NA"]
    assert [r.headers.get("x-api-key") for r in other.requests] == [None] * 5
    other.close()


def test_a_redirect_within_the_service_is_followed_with_the_key(server, quick):
    server.script(TOKEN_PATH, reply(b"", 302, None, Location="/moved"))
    server.script("GET /moved", reply(TOKEN))
    quick.tokens("ethereum", ADDRESS)
    assert [r.headers["x-api-key"] for r in server.requests] == [KEY, KEY]


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/x",
        "file:///etc/passwd",
        "ftp://x/",
        "http://a:b@127.0.0.1/",
    ],
)
def test_a_redirect_into_the_private_network_or_elsewhere_is_not_followed(server, quick, location):
    server.script("*", reply(b"", 302, None, Location=location))
    with pytest.raises(ProtocolError):
        quick.tokens("ethereum", ADDRESS)
    assert len(server.requests) == 1


def test_a_post_that_moved_is_a_post_again_and_is_a_get_only_where_the_service_says_so(
    server, quick
):
    calls = {
        "/v1/segment/execute": lambda: quick.execute_segment({"a": 1}),
        "/v1/search": lambda: quick.search_nfts("ape"),
        "/v1/signup/newsletter": lambda: quick.sign_up("a@example.com"),
    }
    asked, taken = {}, set()
    for (path, call), status in product(calls.items(), (301, 302, 303, 307, 308)):
        for location in (f"/other{path}/", "/v1/answers/7"):
            server.requests.clear()
            server.script(f"POST {path}", reply(b"", status, None, Location=location))
            server.script(f"POST {location}", reply(ROWS))
            server.script(f"GET {location}", reply(ROWS))
            with suppress(ProtocolError):
                call()
                taken.add((status, location[1:3]))
            last = server.requests[-1]
            assert bool(last.body) == (last.method == "POST")
            asked.setdefault((status, location[1:3], last.path == location), set()).add(last.method)
    assert {*product((301, 302, 303, 307, 308), ("ot", "v1"))} - taken == {(302, "v1")}
    server.script("POST /v1/search", reply(b"", 302, None, Location="/v1/answers/7"))
    with pytest.raises(ProtocolError, match="302, which does not say whether the request moved"):
        quick.search_nfts("ape")
    assert [methods for case, methods in asked.items() if case[0] != 303] == [{"POST"}] * 8
    assert [methods for case, methods in asked.items() if case[0] == 303] == [{"GET"}] * 2


def test_a_job_that_may_be_asked_for_at_once_is_asked_for_a_few_times_a_second(server, settings):
    running = reply({"id": "a1", "status": "running"}, Retry_After="0")
    server.script("POST /v1/segment/execute", running)
    server.script("GET /v1/segment/a1", running)
    patient = Client(server.url, KEY, settings=settings(execute_deadline=1.0))
    with pytest.raises(DeadlineExceeded):
        patient.execute_segment({"a": 1})
    assert 2 <= len(server.requests) <= 7


def test_a_retry_after_date_without_a_date_is_held_against_the_clock_here(server, settings):
    in_a_year = format_datetime(datetime.now(UTC) + timedelta(days=365), usegmt=True)
    server.script(TOKEN_PATH, reply({}, 503, Retry_After=in_a_year), reply(TOKEN))
    with pytest.raises(ServerError, match=r"asks to wait 31,5\d\d,\d\d\d s"):
        Client(server.url, KEY, settings=settings()).tokens("ethereum", ADDRESS)
    assert len(server.requests) == 1


def test_redirects_in_a_circle_end(server, quick):
    server.script("*", reply(b"", 302, None, Location="/round"))
    with pytest.raises(ProtocolError):
        quick.tokens("ethereum", ADDRESS)
    assert len(server.requests) == 4


def test_a_segment_is_not_posted_to_another_service(server, quick):
    other = FaultServer()
    server.script("*", reply(b"", 307, None, Location=f"{other.url}/"))
    with pytest.raises(ProtocolError):
        quick.execute_segment({"a": 1})
    assert other.requests == []
    other.close()


# ------------------------------------------------------------------ waiting for a segment


def job(status, **more):
    return {"id": "seg-1", "status": status, **more}


def test_a_segment_that_takes_its_time_is_waited_for(server, quick):
    server.script(EXECUTE, reply(job("queued"), 202))
    server.script(
        "GET /v1/segment/seg-1",
        reply(job("RUNNING")),
        reply(job("defrosting")),
        reply(job("Succeeded")),
    )
    server.script("GET /v1/segment/seg-1/json", reply({"data": ROWS}))
    told = []
    table = quick.execute_segment({"a": 1}, progress=told.append)
    assert table["address"].tolist() == [row["address"] for row in ROWS]
    assert [t.status for t in told if t.phase == "running"] == ["queued", "RUNNING", "defrosting"]
    assert {t.segment_id for t in told if t.phase == "running"} == {"seg-1"}


@pytest.mark.parametrize("status", ["pending", "some-new-word"])
def test_a_segment_that_never_ends_can_be_resumed_by_its_id(server, quick, status):
    server.script("*", reply(job(status), 202))
    with pytest.raises(DeadlineExceeded) as caught:
        within_deadline(lambda: quick.execute_segment({"a": 1}))
    assert caught.value.segment_id == "seg-1"
    assert status in str(caught.value)


def test_a_segment_that_failed_says_why_in_the_services_words(server, quick):
    server.script("*", reply(job("FAILED", error={"message": f"out of credits for {KEY}"})))
    with pytest.raises(SegmentFailed) as caught:
        quick.execute_segment({"a": 1})
    assert str(caught.value) == "Segment seg-1 FAILED: out of credits for ***"
    assert caught.value.segment_id == "seg-1"


@pytest.mark.parametrize(
    "answer",
    [
        {"total": 1000, "rows": ROWS},
        {"count": 1000, "rows": ROWS},
        {"meta": {"total": 2}, "rows": ROWS},
    ],
)
def test_a_count_that_is_not_the_rows_is_an_error_with_both_numbers(server, quick, answer):
    server.script(EXECUTE, reply(answer))
    with pytest.raises(ProtocolError, match=r"states (1,000|2) rows, but 3 came"):
        quick.execute_segment({"a": 1}, limit=5000)


def test_more_rows_than_the_limit_are_an_error(server, quick):
    server.script(EXECUTE, reply(ROWS))
    with pytest.raises(ProtocolError, match="The limit was 2 rows, but 3 came"):
        quick.execute_segment({"a": 1}, limit=2)


# ------------------------------------------------------------------ the environment


def test_on_loopback_neither_proxy_nor_netrc_has_a_say(server, settings, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(
        "machine 127.0.0.1 login me password hidden\ndefault login me password hidden\n"
    )
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "none.pem"))
    server.script("*", reply(TOKEN))
    Client(server.url, KEY, settings=settings()).tokens("ethereum", ADDRESS)
    assert "authorization" not in server.requests[0].headers


def test_a_port_where_nobody_listens_is_a_failed_connection(settings):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ConnectionFailed, match="refused"):
        Client(f"http://127.0.0.1:{port}", KEY, settings=settings(attempts=1)).about()


def test_a_host_that_does_not_exist_is_a_failed_connection(settings):
    with pytest.raises(ConnectionFailed):
        Client("https://no-such-host.invalid", KEY, settings=settings(attempts=1)).about()


def test_tls_to_a_plain_port_is_a_tls_error_without_a_retry(server, settings):
    with pytest.raises(TLSError):
        Client(server.url.replace("http:", "https:"), KEY, settings=settings()).about()
    assert server._connections == 1


# ------------------------------------------------------------------ threads, forks, copies, interrupts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_many_threads_and_random_faults_make_no_storm(server, settings, monkeypatch):
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.001)
    dice = random.Random(7)
    faults = [[RESET], [HEAD + BODY[:9], None], reply({}, 503), reply({}, 429)]

    def handler(_request):
        return dice.choice(faults) if dice.random() < 0.3 else reply(TOKEN)

    server.handler = handler
    shared = Client(server.url, KEY, settings=settings(deadline=20.0))
    ended = []

    def work():
        for _ in range(5):
            try:
                ended.append(shared.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"])
            except NbextError as error:
                ended.append(isinstance(error, ApiError | TransportError))

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ended == [True] * 320
    retries = len(server.requests) - 320
    assert retries <= MAX_RETRIES + 320 * REGAINED


def _in_child(client, queue):
    queue.put(client.tokens("ethereum", ADDRESS)["symbol"].tolist())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_its_own_connections(server, quick):
    server.script("*", reply(TOKEN))
    quick.tokens("ethereum", ADDRESS)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(quick, queue))
    child.start()
    child.join(10)
    assert queue.get() == ["NA"]
    assert quick.tokens("ethereum", ADDRESS)["symbol"].tolist() == ["NA"]
    first, second, third = (r.connection for r in server.requests)
    assert second not in (first, third)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_client_is_neither_pickled_nor_copied(quick, copied):
    with pytest.raises(TypeError, match="neither pickled nor copied"):
        copied(quick)


@pytest.mark.slow
@pytest.mark.parametrize("drip", [dripping, dripping_head, lambda _: [60.0]])
def test_an_interrupt_ends_a_call_at_once_and_leaves_the_client_usable(server, settings, drip):
    patient = Client(server.url, KEY, settings=settings(deadline=30.0, execute_deadline=30.0))
    for call in (
        lambda: patient.tokens("ethereum", ADDRESS),
        lambda: patient.tokens("ethereum", [f"0x{i:040x}" for i in range(20)]),
        lambda: patient.execute_segment({"a": 1}),
        lambda: patient.export_csv("abc"),
    ):
        server.handler = drip
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(QueryCancelled):
            call()
        assert time.monotonic() - began < 15
        server.handler = lambda _: reply(TOKEN)
        assert len(patient.tokens("ethereum", ADDRESS, refresh=True)) == 1


def test_an_interrupt_ends_look_ups_where_another_library_lets_waits_go_on_after_it(
    server, settings
):
    """As polars does from its import on."""
    patient = Client(server.url, KEY, settings=settings(deadline=30.0))
    server.handler = lambda _: [60.0]
    signal.siginterrupt(signal.SIGINT, False)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(QueryCancelled):
            patient.tokens("ethereum", [f"0x{i:040x}" for i in range(20)])
        assert time.monotonic() - began < 15
    finally:
        signal.siginterrupt(signal.SIGINT, True)


def test_an_interrupt_while_a_service_is_asked_whose_it_is_ends_the_call(server, settings):
    patient = Client(server.url, KEY, settings=settings(deadline=30.0))
    server.handler = lambda _: [60.0]
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(QueryCancelled):
        _ = patient.is_ours
    server.handler = lambda _: reply({"service": "nbext"})
    assert patient.is_ours


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_an_interrupt_ends_a_table_that_is_still_arriving(server, settings, kind):
    import io

    import pyarrow as pa

    sink = io.BytesIO()
    batch = pa.record_batch({"address": ["0xab"] * 1000})
    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)
    pieces = {
        "csv": (b"text/csv", b"address\r\n", b"0xab\r\n"),
        "arrow": (b"application/vnd.apache.arrow.stream", sink.getvalue()[:-8], b""),
    }[kind]

    def drip(request):
        if not request.path.endswith("/csv"):
            return reply({}, 404)

        def pour():
            yield b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nConnection: close\r\n\r\n%s" % pieces[:2]
            while True:
                yield pieces[2]
                yield 0.05

        return pour()

    server.handler = drip
    patient = Client(server.url, KEY, settings=settings())
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(QueryCancelled):
        patient.export_csv("abc")
    assert time.monotonic() - began < 2
