"""What a caller gets wrong is told before any request, with what is allowed."""

from __future__ import annotations

import datetime
import decimal
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nbext import Client
from nbext.errors import ConfigError, InvalidSegment, ValidationError
from tests.client.conftest import KEY
from tests.client.faultserver import reply

GOOD = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"


@pytest.fixture
def refused(server, client):
    """Expect a call to be refused before any request."""

    def expect(call, kind=ValidationError):
        with pytest.raises(kind) as caught:
            call()
        assert server.requests == []
        return caught.value

    return expect


@pytest.mark.parametrize(
    "bad",
    [
        "0x" + "a" * 39,
        "0x" + "a" * 41,
        "a" * 40,
        "0X" + "a" * 40,
        "0x" + "g" * 40,
        GOOD + "\n",
        " " + GOOD,
        GOOD + " ",
        "0x" + "١" * 40,
        GOOD.replace("d8dA", "d8da"),
        "vitalik.eth",
        "",
        7,
        None,
        b"0x" + b"a" * 40,
        "0x" + "a" * 10_000,
    ],
)
def test_a_bad_address_is_refused(client, refused, bad):
    error = refused(lambda: client.tokens("ethereum", [bad], strict=True))
    assert error.errors[0]["pointer"] == "address"
    assert len(str(error)) < 300


def test_a_wrong_checksum_shows_the_right_form(client, refused):
    assert GOOD in str(refused(lambda: client.nfts("ethereum", GOOD.replace("d8dA", "d8da"))))


NO_PATHS = [
    "a/b",
    "..",
    "a?b",
    "a#b",
    "%2f",
    "a\0",
    "a\r",
    "a\n",
    "a\nb",
    "\ud800",
    "x" * 9000,
    "",
    " ",
    None,
    1.5,
]


# Of another service's ids these can, percent-encoded.
ODD_IDS = ["a/b", "a?b", "a#b", "%2f", " "]


@pytest.mark.parametrize("odd", ODD_IDS)
def test_another_services_id_goes_out_percent_encoded_and_ours_has_none_such(
    server, client, refused, odd
):
    from urllib.parse import quote

    server.script("*", reply([{"address": GOOD}]))
    for call in (client.segment, client.export_json, client.export_csv):
        assert len(call(odd)) == 1
    assert {request.path.split("/")[3] for request in server.requests} == {quote(odd, safe="")}
    server.requests.clear()
    client._service.ours = True
    for call in (client.segment, client.export_json, client.export_csv):
        refused(lambda call=call: call(odd))


@pytest.mark.parametrize("bad", NO_PATHS)
def test_what_cannot_stand_in_a_path_is_no_chain_and_no_id(client, refused, bad):
    for call in (client.segment, client.export_json, client.export_csv, client.cancel):
        if bad not in ODD_IDS or call == client.cancel:
            refused(lambda call=call: call(bad))
    if bad is not None:
        refused(lambda: client.search_nfts("ape", bad))
        refused(lambda: client.tokens(bad, GOOD))


@pytest.mark.parametrize(
    "bad", [-1, 0, 2**63, 1.5, float("nan"), float("inf"), True, "10", 10**9, np.float64(3)]
)
def test_a_bad_limit_names_the_bounds(server, client, bad):
    with pytest.raises(
        ValidationError, match=r"a whole number from (1|0 \(count only\)) to 10,000,000"
    ):
        client.execute_segment({"a": 1}, limit=bad)
    assert server.asked("/v1/") == []


@pytest.mark.parametrize("good", [1, 10**6, np.int64(5), np.uint8(5)])
def test_a_good_limit_goes_out_as_it_is(server, client, good):
    server.script("*", reply([]))
    client.execute_segment({"a": 1}, limit=good)
    assert server.requests[0].json["limit"] == good


def test_without_a_limit_the_setting_goes_out(server, client):
    server.script("*", reply([]))
    client.execute_segment({"a": 1})
    assert server.requests[0].json == {
        "operator": "AND",
        "filters": {"a": 1},
        "fileType": "json",
        "limit": 1000,
    }


def test_a_limit_of_zero_counts_on_our_own_service_and_is_refused_elsewhere(server, settings):
    counted = {
        "id": "s",
        "status": "completed",
        "counts": {"matched": 62_972, "returned": 0},
        "links": {},
        "columns": [{"name": "address", "type": "string"}],
        "preview": [],
    }
    server.script("GET /about", reply({"service": "nbext"}))
    server.script("POST /v1/segment/execute", reply(counted))
    table = Client(server.url, KEY, settings=settings()).execute_segment({"a": 1}, limit=0)
    assert (len(table), list(table), table.attrs["nbext"]["matched"]) == (0, ["address"], 62_972)
    server.script("GET /about", reply({}, 404))
    with pytest.raises(ValidationError, match="from 1 to 10,000,000"):
        Client(server.url, KEY, settings=settings()).execute_segment({"a": 1}, limit=0)
    assert len(server.asked("/v1/")) == 1


def cycle():
    ring: dict = {}
    ring["again"] = [ring]
    return ring


def nest(levels):
    found: dict = {"x": 1}
    for _ in range(levels):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ([1], "/filters"),
        (None, "/filters"),
        ("{}", "/filters"),
        ({1: 2}, "/filters"),
        ({"a": [float("nan")]}, "/filters/a/0"),
        ({"a": float("inf")}, "/filters/a"),
        ({"a": decimal.Decimal("NaN")}, "/filters/a"),
        ({"a": decimal.Decimal("1e300000000")}, "/filters/a"),
        ({"a": 10**5000}, "/filters/a"),
        ({"a": pd.NaT}, "/filters/a"),
        ({"a": datetime.time(12)}, "/filters/a"),
        ({"a": b"x"}, "/filters/a"),
        ({"a": {"b": [0, object()]}}, "/filters/a/b/1"),
        (cycle(), "/filters/again/0"),
        (nest(65), "/filters/a/a"),
        ({"a": "x" * 1_100_000}, "/filters"),
        ({str(i): i for i in range(100_000)}, "/filters"),
        ({"a": "\ud800"}, "/filters/a"),
        ({"a": np.timedelta64(1, "ns")}, "/filters/a"),
        ({"a": pd.NA}, "/filters/a"),
        ({"a": np.datetime64("NaT")}, "/filters/a"),
        ({"a": (one for one in [1])}, "/filters/a"),
        ({"wallet": {"in": (one for one in [GOOD])}}, "/filters/wallet/in"),
        ({"a": pd.DataFrame({"b": [1], "c": [2]})}, "/filters/a"),
    ],
)
def test_filters_that_json_cannot_say_are_refused_with_their_path(client, refused, bad, path):
    error = refused(lambda: client.execute_segment(bad), InvalidSegment)
    assert error.errors[0]["pointer"].startswith(path)


def test_filters_go_out_exactly(server, client):
    server.script("*", reply([]))
    client.execute_segment(
        {
            "whole": 2**53,
            "big": 2**256 - 1,
            "small": -(2**60),
            "amount": decimal.Decimal("0.10"),
            "tiny": decimal.Decimal("1E-18"),
            "float": 0.5,
            "numpy": [
                np.int64(7),
                np.float64(0.25),
                np.bool_(True),
                np.str_("x"),
                np.uint64(2**63),
            ],
            "text": "NA",
            "none": None,
            "yes": True,
            "pair": (1, 2),
            "many": [
                pd.Series([1, 2]),
                {"b", "a"},
                np.array([[1], [2]]),
                pa.array(["x"]),
                pd.DataFrame({"n": [1]}),
                np.array(["2024-01-31T12:30"], "datetime64[ns]"),
            ],
            "emoji": "🦍",
            "": {},
            "times": [
                datetime.date(2024, 1, 31),
                datetime.datetime(2024, 1, 31, 12, 30),
                pd.Timestamp("2024-01-31 12:30", tz="Asia/Tokyo"),
            ],
        }
    )
    assert json.loads(server.requests[0].body)["filters"] == {
        "whole": 2**53,
        "big": str(2**256 - 1),
        "small": str(-(2**60)),
        "amount": "0.10",
        "tiny": "0.000000000000000001",
        "float": 0.5,
        "numpy": [7, 0.25, True, "x", str(2**63)],
        "text": "NA",
        "none": None,
        "yes": True,
        "pair": [1, 2],
        "many": [[1, 2], ["a", "b"], [[1], [2]], ["x"], [1], ["2024-01-31T12:30:00Z"]],
        "emoji": "🦍",
        "": {},
        "times": ["2024-01-31", "2024-01-31T12:30:00Z", "2024-01-31T03:30:00Z"],
    }


@pytest.mark.parametrize("bad", ["exe", "../csv", "CSV\r\nX", None, "", 7, "jsn"])
def test_a_bad_file_type_lists_the_good_ones(client, refused, bad):
    assert "Allowed: json, csv." in str(
        refused(lambda: client.execute_segment({"a": 1}, file_type=bad))
    )


@pytest.mark.parametrize("bad", ["XOR", "", None, "AN", 1])
def test_a_bad_operator_lists_the_good_ones(client, refused, bad):
    assert "Allowed: AND, OR." in str(refused(lambda: client.execute_segment({"a": 1}, bad)))


def test_a_word_in_another_case_is_the_word(server, client):
    server.script("*", reply([]))
    client.execute_segment({"a": 1}, "or", "CSV")
    assert (server.requests[0].json["operator"], server.requests[0].json["fileType"]) == (
        "OR",
        "csv",
    )


@pytest.mark.parametrize("bad", ["a\0b", "x" * 257, "x" * 100_000, None, 7, "\ud800"])
def test_a_bad_search_term_is_refused(client, refused, bad):
    error = refused(lambda: client.search_nfts(bad))
    if not isinstance(bad, str):
        assert str(error) == f"/searchTerm: A term is a text, not {type(bad).__name__}."


def test_a_type_that_is_a_standard_is_answered_with_the_word_for_it(refused, client):
    assert str(refused(lambda: client.search_nfts("x", type="erc20"))) == (
        "/type: 'erc20' is not allowed. Did you mean 'token'? Allowed: nft, erc721, erc1155, token."
    )


@pytest.mark.parametrize("empty", ["", "   "])
def test_an_empty_search_term_is_refused_once_a_service_is_known_to_be_a_strangers(
    server, client, empty
):
    server.script("*", reply([]))
    with pytest.raises(ValidationError, match="only nbext's own lists everything"):
        client.search_nfts(empty)
    assert [(one.method, one.path) for one in server.requests] == [("GET", "/about")]


@pytest.mark.parametrize("good", ["%", "_*\\", "عربي", "🦍", "$PEPE", "x" * 256])
def test_a_search_term_goes_out_as_it_is(server, client, good):
    server.script("*", reply([]))
    client.search_nfts(good)
    assert server.requests[0].json == {"type": "nft", "chain": "ethereum", "searchTerm": good}


EMAILS = [
    "someone@example.com",
    "a@b",
    "a@b.co",
    "",
    "@",
    "a b@c.de",
    "a@b.co\r\nBcc: x@y.zz",
    "a@b.co,c@d.ee",
    "x <a@b.co>",
    "a@b.co\n",
    " a@b.co",
    "a@@b.co",
    ".a@b.co",
    "a.@b.co",
    "a..b@c.de",
    "a@-b.co",
    "a@b_c.de",
    "a@[127.0.0.1]",
    "a\u200b@b.co",
    "ü@example.com",
    "a@bücher.example",
    "a@localhost",
    "a@b.invalid",
    '"a b"@c.de',
    "a+tag@b.co",
    "a" * 65 + "@b.co",
    "a@" + "b" * 64 + ".co",
    "\u202ea@b.co",
    "a@b.c",
    "(x)a@b.co",
    "a@b.co.",
    "A@B.CO",
]


@pytest.mark.parametrize("address", EMAILS)
def test_an_email_address_is_judged_as_email_validator_does(server, client, address):
    from email_validator import EmailNotValidError, validate_email

    server.script("*", reply({"status": "recorded", "delivered": False}, 202))
    try:
        normal = validate_email(address, check_deliverability=False).normalized
    except EmailNotValidError:
        with pytest.raises(ValidationError):
            client.sign_up(address)
        assert server.requests == []
    else:
        assert client.sign_up(address).iloc[0].tolist() == [normal, "recorded", False]
        assert server.requests[0].json == {"email": normal}


@pytest.mark.parametrize("bad", ["a" * 1_000_000 + "@b.co", ["a@b.co"], None])
def test_a_long_or_odd_email_never_reaches_the_parser(client, refused, bad):
    refused(lambda: client.sign_up(bad))


# ------------------------------------------------------------------ base_url and key


@pytest.mark.parametrize("bad", ["a\nb", "a b", "ключ", "k" * 10_000, "", "   ", None, "a\x7fb"])
def test_a_bad_key_is_refused_without_being_shown(settings, bad):
    with pytest.raises(ConfigError) as caught:
        Client("http://127.0.0.1:1", bad, settings=settings())
    assert not bad or not bad.strip() or bad not in str(caught.value)


def test_whitespace_around_a_key_is_dropped(server, settings):
    server.script("*", reply({}))
    Client(server.url, f"  {KEY}\n", settings=settings()).about()
    assert server.requests[0].headers["x-api-key"] == KEY


def test_counting_is_refused_where_nobody_knows_it(server, client):
    server.script("*", reply({}, 404))
    with pytest.raises(ValidationError) as caught:
        client.execute_segment({"a": 1}, limit=0)
    assert str(caught.value) == (
        "/limit: A limit of 0 only counts, which this service is not known to do. "
        'Write a whole number from 1 to 10,000,000, or "all".'
    )


def test_http_beyond_this_machine_needs_a_word(settings):
    for url in ("http://api.example.com", "http://10.0.0.1:80", "http://localhost.example.com"):
        with pytest.raises(ConfigError, match="set insecure true"):
            Client(url, KEY, settings=settings())
        assert Client(url, KEY, settings=settings(insecure=True)).base_url == url.removesuffix(
            ":80"
        )
    for url in (
        "http://localhost:1",
        "http://127.0.0.1",
        "http://[::1]:8000",
        "https://api.example.com",
    ):
        assert Client(url, KEY, settings=settings()).base_url == url


@pytest.mark.parametrize(
    "bad",
    [
        "https://me:pw@h.example",
        "https://me@h.example",
        "https://h.example?x=1",
        "https://h.example/#f",
        "h.example",
        "file:///etc/passwd",
        "//h.example",
        "https://",
        "https:///x",
        "https://h.example:0",
        "https://h.example:99999",
        "https://h.example:x",
        "https://раураl.example",
        "https://h ost",
        "https://h.example\n",
        "https://h\\.example",
        "https://a..b",
        "",
        None,
        7,
        "https://[::1",
        "https://-.example",
        "ftp://h.example",
        "https://h.example?",
        "https://@h.example",
    ],
)
def test_a_bad_base_url_is_refused(settings, bad):
    with pytest.raises(ConfigError) as caught:
        Client(bad, KEY, settings=settings())
    assert "me:pw" not in str(caught.value)


def test_an_address_in_other_letters_shows_its_plain_form(settings):
    with pytest.raises(ConfigError, match=r"Write xn--"):
        Client("https://аpple.example", KEY, settings=settings())


def test_a_prefix_is_kept_and_a_closing_slash_is_not(server, settings):
    server.script("GET /api/v9/about", reply({"service": "x"}))
    found = Client(f"{server.url}/api/v9/", KEY, settings=settings())
    assert found.about() == {"service": "x"}
    assert repr(found) == f"<nbext.Client {server.url}/api/v9>"
