"""The key is on the wire, in one header, and nowhere else."""

from __future__ import annotations

import gc
import io
import logging
import pickle
import pprint
import sys
import traceback

import pytest

from nbext import Client
from nbext.errors import NbextError
from nbext.settings import Secret
from tests.client.conftest import KEY
from tests.client.faultserver import RESET, reply

ADDRESS = "0x" + "ab" * 20


def verbose(error):
    """A traceback with the locals of every frame, causes included, as %xmode Verbose prints it."""
    from IPython.core.ultratb import VerboseTB

    printed = VerboseTB(theme_name="nocolor").text(
        type(error), error, error.__traceback__, context=5
    )
    printed += "".join(
        traceback.TracebackException.from_exception(error, capture_locals=True).format()
    )
    found, seen = error.__traceback__, []
    while found is not None:
        seen += [
            pprint.pformat(value) + str(vars(value) if hasattr(value, "__dict__") else "")
            for value in found.tb_frame.f_locals.values()
            if not isinstance(value, type(sys))
        ]
        found = found.tb_next
    # What the test itself knows is not what leaked: its own frame is the first.
    return printed + "".join(seen)


FAULTS = {
    "401 that echoes": reply(
        {"detail": KEY, "errors": [{"pointer": KEY, "detail": KEY}], KEY: KEY}, 401
    ),
    "500 that echoes": reply(KEY.encode(), 500, "text/plain"),
    "reset": [RESET],
    "garbage": [KEY.encode() + b"\r\n\r\n", None],
    "html that echoes": reply(f"<html><title>{KEY}</title>".encode(), 200, "text/html"),
    "html that is cut inside of it": reply(
        f"<html><title>{'x' * 64}{KEY}</title>".encode(), 200, "text/html"
    ),
    "csv that is cut inside of it": reply(f"a,b\n{'x' * 140}{KEY}\n".encode(), 200, "text/csv"),
    "names that are cut inside of it": reply({f"{'x' * 62}{KEY} {n}": [{"x": 1}] for n in "ab"}),
    "error inside that echoes": reply({"error": f"bad {KEY}"}),
    "failed segment that echoes": reply(
        {"id": "x", "status": f"failed {KEY} failed", "error": KEY}
    ),
    "cut": [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + KEY.encode(), None],
    "names that echo": reply({KEY: 1}),
    "id that echoes": reply({"id": f"/{KEY}"}),
    "json that breaks": reply(f'{{"a": {KEY}'.encode()),
    "status line": [
        b"HTTP/1.1 200 " + KEY.encode() + b"\r\nContent-Encoding: " + KEY.encode() + b"\r\n\r\n",
        None,
    ],
    "redirect": reply(b"", 302, None, Location=f"ftp://{KEY}/"),
    "two tables": reply({f"{KEY} a": [{"x": 1}], f"{KEY} b": [{"x": 1}]}),
    "csv": reply(f"{KEY};a\n".encode(), 200, "text/csv"),
    "csv that breaks": reply(f"a,b\n{KEY}\n".encode(), 200, "text/csv"),
    "text": reply(f"{KEY} {KEY}".encode(), 200, "text/plain"),
}


@pytest.fixture
def caught(server, settings, monkeypatch):
    monkeypatch.setattr("nbext.http.transport.FIRST_PAUSE", 0.001)
    client = Client(
        server.url,
        KEY,
        settings=settings(deadline=3.0, execute_deadline=0.5, download_deadline=0.5),
    )

    def all_of(fault):
        server.script("*", fault)
        for call in (
            lambda: client.tokens("ethereum", ADDRESS),
            lambda: client.execute_segment({"a": 1}),
            lambda: client.export_csv("abc"),
            lambda: client.search_nfts("ape"),
            client.about,
        ):
            try:
                call()
            except NbextError as error:
                yield error

    return all_of


def test_no_error_and_no_log_holds_the_key(caught, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    for name, fault in FAULTS.items():
        for error in caught(fault):
            printed = verbose(error.with_traceback(error.__traceback__.tb_next))
            monkeypatch.setenv("NBEXT_TRACEBACK", "1")
            told = (
                repr(error)
                + str(error)
                + repr(error.args)
                + repr(vars(error))
                + "".join(error._render_traceback_())
            )
            monkeypatch.delenv("NBEXT_TRACEBACK")
            # Not `in` on the texts themselves: a failing assertion would print them, and take its time.
            texts = {"told": told, "printed": printed}
            leaks = [where for where, text in texts.items() if KEY[:12] in text]
            assert (leaks, error.__cause__, error.__context__) == ([], None, None), name
    assert {record.name.split(".")[0] for record in caplog.records} >= {"nbext", "urllib3"}
    for record in caplog.records:
        assert KEY not in record.getMessage() + repr(record.args)


def test_what_pythons_own_library_prints_has_nothing_of_ours(server, settings, monkeypatch, capsys):
    monkeypatch.setattr("http.client.HTTPConnection.debuglevel", 1)
    server.script("*", reply({"address": ADDRESS}))
    Client(server.url, KEY, settings=settings()).tokens("ethereum", ADDRESS)
    assert (capsys.readouterr().out, server.requests[0].headers["x-api-key"]) == ("", KEY)


def test_no_view_of_a_client_holds_the_key(server, settings):
    server.script("*", reply({}))
    client = Client(server.url, Secret(KEY), settings=settings())
    client.about()
    views = [
        *(
            repr(thing)
            for thing in (
                client,
                vars(client),
                vars(client._transport),
                vars(client._transport.session),
            )
        ),
        *(
            repr(thing)
            for thing in (
                dir(client),
                client.settings.all(),
                client.request_for({"a": 1}),
                client.key,
            )
        ),
        str(client),
        f"{client} {client.key}",
        pprint.pformat(vars(client)),
        repr(client._transport.session.headers),
    ]
    assert KEY not in "".join(views)


def test_a_formatter_that_shows_everything_does_not_show_the_key(server, settings):
    from IPython.lib.pretty import pretty

    client = Client(server.url, KEY, settings=settings())
    assert KEY not in pretty(client) + pretty(vars(client)) + pretty(client._transport.key)


def test_neither_a_client_nor_its_secret_is_pickled(server, settings):
    client = Client(server.url, KEY, settings=settings())
    for thing in (client, client._transport, client._transport.key):
        with pytest.raises(TypeError):
            pickle.dump(thing, io.BytesIO())


def test_no_session_and_no_kept_answer_holds_the_key(server, settings):
    server.script("*", reply({"address": ADDRESS}, ETag='"1"', Vary="x-api-key"))
    client = Client(server.url, KEY, settings=settings())
    client.tokens("ethereum", ADDRESS)
    client.tokens("ethereum", ADDRESS)
    adapter = client._transport.session.get_adapter(f"{server.url}/v1/tokens/x")
    assert KEY.encode() not in b"".join(adapter._controller.cache.data.values())
    # Nor does a request that somebody still holds.
    gc.collect()
    import requests

    prepared = [thing for thing in gc.get_objects() if isinstance(thing, requests.PreparedRequest)]
    assert all(KEY not in str(thing.headers) for thing in prepared)
