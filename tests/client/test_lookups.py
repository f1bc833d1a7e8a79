"""Many look-ups at once: in order, one bad address is one row, and what is known is not asked again."""

from __future__ import annotations

import threading
import time
from email.utils import formatdate

import pandas as pd
import pytest

from nbext import Client
from nbext.errors import AuthError, NotFound, ProtocolError, ServerError, ValidationError
from tests.client.conftest import KEY
from tests.client.faultserver import reply

ADDRESSES = [f"0x{i:040x}" for i in range(40)]


def told(request, **headers):
    address = request.path.rpartition("/")[2]
    return reply({"address": address, "symbol": "NA", "decimals": 18}, **headers)


def test_what_is_neither_an_address_nor_several_is_refused(client):
    for odd, said in ((5, "5"), ([ADDRESSES[0], [ADDRESSES[1]]], "a list")):
        with pytest.raises(ValidationError) as caught:
            client.tokens("ethereum", odd)
        assert (
            str(caught.value)
            == f"address: Expected an address or a flat list of texts, got {said}."
        )


def test_the_rows_come_in_the_order_asked_and_each_address_is_asked_once(server, client):
    server.handler = lambda request: [0.001 * (int(request.path[-2:], 16) % 7), told(request)]
    asked = [*reversed(ADDRESSES), ADDRESSES[3], ADDRESSES[3]]
    table = client.tokens("ethereum", asked)
    assert table["address"].tolist() == asked
    assert len(server.requests) == 40


def test_at_most_eight_are_under_way(server, client):
    busy, most, lock = [0], [0], threading.Lock()

    def handler(request):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.01)
        with lock:
            busy[0] -= 1
        return told(request)

    server.handler = handler
    client.tokens("ethereum", ADDRESSES)
    assert 2 <= most[0] <= 8


def test_one_bad_address_is_one_row_with_its_error(server, client):
    server.handler = lambda request: (
        reply({"detail": "none"}, 404) if request.path.endswith("05") else told(request)
    )
    table = client.nfts("ethereum", [ADDRESSES[4], ADDRESSES[5], "0xbad", ADDRESSES[6]])
    assert table["symbol"].isna().tolist() == [False, True, True, False]
    assert table["address"].tolist() == [ADDRESSES[4], ADDRESSES[5], "0xbad", ADDRESSES[6]]
    assert table["error"].tolist()[1] == "NotFound: The service answered 404: none"
    assert (
        table["error"]
        .tolist()[2]
        .startswith("ValidationError: address: '0xbad' is not an address.")
    )


def test_strict_raises_for_the_bad_address(server, client):
    server.handler = lambda request: (
        reply({}, 404) if request.path.endswith("05") else told(request)
    )
    with pytest.raises(NotFound):
        client.tokens("ethereum", ADDRESSES, strict=True)
    with pytest.raises(ValidationError):
        client.tokens("ethereum", [*ADDRESSES[:3], "0xbad"], strict=True)


def test_one_address_raises_its_error(server, client):
    server.script("*", reply({}, 404))
    with pytest.raises(NotFound):
        client.tokens("ethereum", ADDRESSES[0])


@pytest.mark.parametrize(("status", "kind"), [(401, AuthError), (500, ServerError)])
def test_what_would_meet_every_address_is_raised_and_not_asked_for_each(
    server, settings, status, kind, monkeypatch
):
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.001)
    server.script("*", [0.05, reply({}, status)])
    with pytest.raises(kind):
        Client(server.url, KEY, settings=settings(attempts=1)).tokens("ethereum", ADDRESSES)
    assert len(server.requests) < 30


@pytest.mark.parametrize(
    "given",
    [
        ADDRESSES[:2],
        tuple(ADDRESSES[:2]),
        pd.Series(ADDRESSES[:2], index=[7, 3]),
        pd.Index(ADDRESSES[:2]),
        (a for a in ADDRESSES[:2]),
    ],
)
def test_addresses_may_stand_in_anything_that_can_be_gone_through(server, client, given):
    server.handler = told
    assert client.tokens("ethereum", given)["address"].tolist() == ADDRESSES[:2]


def test_no_address_at_all_is_refused(server, client):
    with pytest.raises(ValidationError, match="No address"):
        client.tokens("ethereum", [])
    assert server.requests == []


def test_a_symbol_goes_only_to_our_own_service(server, settings):
    server.script("GET /about", reply({"service": "nbext"}))
    server.script(
        "GET /v1/tokens/ethereum/%24PEPE", reply({"address": ADDRESSES[0], "symbol": "$PEPE"})
    )
    ours = Client(server.url, KEY, settings=settings())
    assert ours.tokens("ethereum", "$PEPE")["symbol"].tolist() == ["$PEPE"]
    server.script("GET /about", reply({}, 404))
    with pytest.raises(ValidationError, match="not an address"):
        Client(server.url, KEY, settings=settings()).tokens("ethereum", "$PEPE")


# ------------------------------------------------------------------ what is known already


def now():
    return formatdate(usegmt=True)


def test_an_answer_is_good_for_as_long_as_the_service_says(server, client):
    server.handler = lambda request: told(request, Cache_Control="max-age=60", Date=now())
    for _ in range(3):
        client.tokens("ethereum", ADDRESSES[:3])
    assert len(server.requests) == 3


def test_refresh_asks_again_and_a_304_keeps_what_is_known(server, client):
    def handler(request):
        if request.headers.get("if-none-match") == '"v1"':
            return reply(b"", 304, None, ETag='"v1"', Date=now())
        return told(request, ETag='"v1"', Cache_Control="max-age=60", Date=now())

    server.handler = handler
    first = client.tokens("ethereum", ADDRESSES[0])
    again = client.tokens("ethereum", ADDRESSES[0], refresh=True)
    pd.testing.assert_frame_equal(first, again)
    assert [r.headers.get("if-none-match") for r in server.requests] == [None, '"v1"']


@pytest.mark.parametrize("rule", ["no-store", "no-cache", "max-age=0", "private, max-age=0"])
def test_what_may_not_be_kept_is_asked_again(server, client, rule):
    server.handler = lambda request: told(request, Cache_Control=rule, Date=now())
    client.tokens("ethereum", ADDRESSES[0])
    client.tokens("ethereum", ADDRESSES[0])
    assert len(server.requests) == 2


def test_an_error_is_not_kept(server, client):
    server.script(
        "*",
        reply({}, 404, Cache_Control="max-age=60", Date=now()),
        reply({"address": ADDRESSES[0]}, Cache_Control="max-age=60", Date=now()),
    )
    with pytest.raises(NotFound):
        client.tokens("ethereum", ADDRESSES[0])
    assert len(client.tokens("ethereum", ADDRESSES[0])) == 1


def test_the_memory_of_answers_is_bounded(server, client, monkeypatch):
    monkeypatch.setattr("nbext.http.connections.MAX_ENTRIES", 10)
    server.handler = lambda request: told(request, Cache_Control="max-age=60", Date=now())
    client.tokens("ethereum", ADDRESSES)
    adapter = client._transport.session.get_adapter(f"{server.url}/v1/tokens/x")
    assert len(adapter._controller.cache.data) == 10


def test_a_table_is_no_record(server, client):
    server.script("*", reply(b"address,name\n0x1,A\n", content_type="text/csv"))
    with pytest.raises(ProtocolError, match="Expected one record, but the answer is a table"):
        client.tokens("ethereum", ADDRESSES[0])
    many = client.tokens("ethereum", ADDRESSES[:2])
    assert (
        many["error"].tolist()
        == ["ProtocolError: Expected one record, but the answer is a table."] * 2
    )
