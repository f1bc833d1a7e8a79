"""Analyses while the data changes: of a segment of the data before, and between two of their own requests."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

import nbext
from nbext import Client
from nbext.core.wire import MAX_COMPARED
from nbext.errors import ValidationError
from nbext.settings import Settings
from tests.analysis.conftest import random_world
from tests.analysis.test_overlap import BY_ID, QUEST
from tests.engine import forms
from tests.service.conftest import KEY, Running

EVERYONE = [f"0x{number:040x}" for number in range(MAX_COMPARED + 1)]
MIXED = "The data changed between two requests, and the numbers are not all of the same data. Ask again."


@pytest.fixture(scope="module")
def generations(tmp_path_factory):
    """Two services with one registry, each on other data: as one is before an ingest and after it."""
    state, running = tmp_path_factory.mktemp("state"), []
    for seed in (1, 2):
        folder = tmp_path_factory.mktemp("data")
        forms.generation(folder, random_world(seed), f"{seed:06x}")
        running.append(Running(folder, state))
    yield running
    for one in running:
        one.stop()


class Switch(ThreadingHTTPServer):
    """One address for both services: the second answers from the count on that is ``later``.

    The header of an answer names the newest data there was when it began: the second's from the count on ``newest``.
    """

    daemon_threads = True

    def __init__(self, services):
        super().__init__(("127.0.0.1", 0), Forward)
        self.services, self.later, self.newest, self.counts = services, 0, None, 0


class Forward(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.counts += self.path == "/counts"
        service = server.services[server.counts > server.later]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {**self.headers, "Host": f"{service.host}:{service.port}"}
        answer = requests.request(
            self.command, service.url + self.path, data=body, headers=headers, timeout=60
        )
        self.send_response(answer.status_code)
        for name in ("Content-Type", *["X-Nbext-Data"] * (server.newest is None), "ETag"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        if server.newest is not None:
            newest = server.services[server.counts > server.newest]
            self.send_header("X-Nbext-Data", newest.get("/about").json()["data"]["fingerprint"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_POST = do_GET  # noqa: N815  http.server's own name

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def switch(generations):
    server = Switch(generations)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def clients(generations, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    settings = Settings(environ={}, folder=tmp_path)
    with (
        Client(generations[0].url, KEY, settings=settings) as before,
        Client(generations[1].url, KEY, settings=settings) as after,
    ):
        yield before, after


@pytest.mark.parametrize("analysis", BY_ID.values(), ids=BY_ID)
def test_it_is_said_that_a_segment_was_saved_on_other_data(clients, generations, analysis):
    before, after = clients
    table = before.execute_segment(QUEST[0], limit=2)
    name = table.attrs["nbext"]["segment_id"]
    note = f"{name} was saved with limit 2 and on other data: all wallets that match now are taken."
    # A table knows the address that it is from.
    table.attrs["nbext"]["service"] = after.base_url
    for one in (name, table):
        assert analysis(one, after).attrs["nbext"]["warnings"].count(note) == 1
        assert note not in analysis(one, before).attrs["nbext"]["warnings"]


@pytest.mark.parametrize(
    ("later", "newest", "mixed"),
    [
        (0, None, False),
        (1, None, True),
        (2, None, False),
        # New data came while the first answer was made, and while the second was.
        (1, 0, True),
        (2, 1, False),
    ],
)
def test_a_lift_of_two_data_says_so(switch, tmp_path, later, newest, mixed):
    (tmp_path / "pyproject.toml").write_text("")
    url, switch.later = f"http://127.0.0.1:{switch.server_port}", later
    switch.newest = newest
    with Client(url, KEY, settings=Settings(environ={}, folder=tmp_path)) as client:
        lift = nbext.overlap(["USDC", "BAYC"], lift=True, client=client)
    assert (MIXED in lift.attrs["nbext"]["warnings"], switch.counts) == (mixed, 2)


def test_an_upset_plot_that_is_drawn_after_an_ingest_is_all_of_the_data_that_came(switch, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    url, switch.later = f"http://127.0.0.1:{switch.server_port}", 1
    with Client(url, KEY, settings=Settings(environ={}, folder=tmp_path)) as client:
        before = nbext.overlap(["USDC", "BAYC"], client=client)
        drawn = before.chart("upset").spec
        after = nbext.overlap(["USDC", "BAYC"], client=client)
        assert not before.equals(after)
        assert drawn == after.chart("upset").spec


def test_counts_of_more_segments_than_one_request_compares_say_so(switch, tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    url, switch.later = f"http://127.0.0.1:{switch.server_port}", 1
    many = {f"s{block}": {"wallet": {"in": [EVERYONE[block]]}} for block in range(MAX_COMPARED + 1)}
    with Client(url, KEY, settings=Settings(environ={}, folder=tmp_path)) as client:
        assert MIXED in nbext.overlap(many, client=client).attrs["nbext"]["warnings"]
        assert MIXED not in nbext.overlap(many, client=client).attrs["nbext"]["warnings"]
        # Each is named by where it was given, and not by its place in the second request.
        many[f"s{MAX_COMPARED}"] = {"token": {"token": "NOPE"}}
        with pytest.raises(
            ValidationError, match=f"^/segments/{MAX_COMPARED}/filters/token/token: "
        ):
            nbext.overlap(many, client=client)
